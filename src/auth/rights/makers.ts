/**
 * Whether the maker of a shared credential, such as a preview token, could still make it: the maker belongs to the
 * workspace, and the right it was made with has not ended. The answers are cached, because every request to a private
 * preview asks, and the cache is cleared whenever any identity changes.
 */
import { isAccountAdmin } from "../../contract/caller.ts";
import type { Role } from "../../contract/operation.ts";
import type { MadeBy } from "../../contract/preview-tokens.ts";
import type { Running } from "../../lib/lifecycle.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Store } from "../../store/store.ts";
import type { Authenticator } from "../authenticator.ts";
import { ENDED, ENDLESS, endOf } from "./ends.ts";

/** Most cache entries; a full cache is cleared. */
const CACHE_MAX = 10_000;

export interface Maker {
  role: Role;
  /** When the maker joined the workspace: credentials made before an earlier removal stay invalid. */
  sinceMs: number;
  /** When the right ends that the maker used; Infinity = never. */
  untilMs: number;
}

interface Made {
  workspace: string;
  createdBy: string;
  state: Record<string, unknown>;
}

export interface MakersDeps {
  store: Store;
  clock: Clock;
  authenticator: Pick<Authenticator, "callerNamed" | "membershipIn">;
}

export interface Makers extends Running {
  /** Returns null when the maker has left the workspace or the right has ended. */
  makerOf(made: Made): Promise<Maker | null>;
}

export function createMakers({ store, clock, authenticator }: MakersDeps): Makers {
  const known = new Map<string, { maker: Maker | null; endsAt: number }>();
  // Counts identity changes: a value read before a change must not be cached after it.
  let era = 0;
  const unsubscribe = store.onIdentityChange(() => {
    era += 1;
    known.clear();
  });

  async function look({ subject, subjectType }: MadeBy, name: string): Promise<Omit<Maker, "untilMs"> | null> {
    const caller = await authenticator.callerNamed(subject, subjectType);
    const membership = caller && (await authenticator.membershipIn(caller, name));
    if (!membership) return null;
    const { role, workspace } = membership;
    if (caller.bound || isAccountAdmin(caller, workspace.accountId)) return { role, sinceMs: 0 };
    return { role, sinceMs: (await store.people.memberSince(name, subject)) ?? 0 };
  }

  return {
    async makerOf(made) {
      const by = await madeBy(made, store);
      if (by === null) return UNKNOWN;
      const key = [made.workspace, by.subject, by.right].join("\0");
      const cached = known.get(key);
      if (cached && cached.endsAt > clock.now()) return cached.maker;
      const readIn = era;
      const endsAt = await endOf(by.right, { store, clock });
      const found = endsAt === ENDED ? null : await look(by, made.workspace);
      const maker = found && { ...found, untilMs: endsAt };
      if (readIn === era && endsAt !== ENDED) {
        if (known.size >= CACHE_MAX) known.clear();
        known.set(key, { maker, endsAt });
      }
      return maker;
    },

    async stop() {
      unsubscribe();
    },
  };
}

/** The maker of a token that a machine made before makers were recorded. */
const UNKNOWN: Maker = { role: "admin", sinceMs: 0, untilMs: ENDLESS };

async function madeBy({ state, createdBy }: Made, store: Store): Promise<MadeBy | null> {
  if (state.madeBy !== undefined) return state.madeBy as MadeBy;
  if (!createdBy.includes("@")) return null;
  const person = await store.people.getUser(createdBy);
  return { subject: person?.sub ?? "", subjectType: "user", right: null };
}
