/**
 * Whether whoever made something for others to use, such as a preview's token, could still make it: the maker belongs
 * to the workspace and the right it was made with stands. Answers are cached and forgotten whenever anything about
 * identity changes, as every request to a private preview asks.
 */
import { isAccountAdmin } from "../../contract/caller.ts";
import type { Role } from "../../contract/operation.ts";
import type { MadeBy } from "../../contract/preview-tokens.ts";
import type { Running } from "../../lib/lifecycle.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Store } from "../../store/store.ts";
import type { Authenticator } from "../authenticator.ts";
import { ENDED, endOf } from "./ends.ts";

/** Bounds memory; a full cache starts over. */
const CACHE_MAX = 10_000;

export interface Maker {
  role: Role;
  /** When the maker came into the workspace: what they made before they were removed from it stays ended. */
  sinceMs: number;
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
  /** Null when the maker is gone from the workspace, or the right that it was made with has ended. */
  makerOf(made: Made): Promise<Maker | null>;
}

export function createMakers({ store, clock, authenticator }: MakersDeps): Makers {
  const known = new Map<string, { maker: Maker | null; endsAt: number }>();
  // Counts changes: what was read before one must not be kept after it.
  let era = 0;
  const unsubscribe = store.onIdentityChange(() => {
    era += 1;
    known.clear();
  });

  async function look({ subject, subjectType }: MadeBy, name: string): Promise<Maker | null> {
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
      const found = known.get(key);
      if (found && found.endsAt > clock.now()) return found.maker;
      const readIn = era;
      const endsAt = await endOf(by.right, { store, clock });
      const maker = endsAt === ENDED ? null : await look(by, made.workspace);
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

/** Of a token that a machine made before its maker was noted. */
const UNKNOWN: Maker = { role: "admin", sinceMs: 0 };

async function madeBy({ state, createdBy }: Made, store: Store): Promise<MadeBy | null> {
  if (state.madeBy !== undefined) return state.madeBy as MadeBy;
  if (!createdBy.includes("@")) return null;
  const person = await store.people.getUser(createdBy);
  return { subject: person?.sub ?? "", subjectType: "user", right: null };
}
