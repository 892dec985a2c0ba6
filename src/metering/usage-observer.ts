/**
 * Tells a meter what the records say: whenever a resource changes, and once for every resource at the start. It
 * compares nothing and remembers only what it last said, so news that is lost or repeated does no harm.
 */
import { PlatformError } from "../contract/errors.ts";
import { Gathering } from "../lib/gathering.ts";
import { KeyedQueue } from "../lib/keyed-queue.ts";
import type { Running } from "../lib/lifecycle.ts";
import type { Resource } from "../store/resources/resource.ts";
import type { Store } from "../store/store.ts";
import type { DimensionName } from "./dimensions.ts";
import type { Meter, MeteredResource } from "./meter.ts";
import type { Rates } from "./resource-rates.ts";

/** Records read at a time at the start. */
const PAGE = 500;
/** Records looked at together: the meter puts what they say into one commit. */
const CONCURRENCY = 256;
/**
 * What is new is looked at when nothing new has come for this long, or after the other where it never stops coming:
 * whoever makes a hundred at once waits for them, and not for the bill. It is billed from when it began all the same.
 */
const QUIET_MS = 250;
const BUSY_MAX_MS = 1_000;
/** It is made, then it runs. A third change may be the beginning of its end, before which it must be known. */
const CHANGES_OF_A_START = 2;

export interface Observation {
  rates: Rates;
  /** Since when; absent = since now. */
  atMs?: number;
  /** See Meter.setRate. */
  resume?: boolean;
}

export interface UsageObserverOptions {
  store: Pick<Store, "resources" | "workspaces">;
  meter: Pick<Meter, "setRate">;
  kinds: readonly string[];
  /** Nobody else meters the same: what is new may wait a moment. */
  alone: boolean;
  /** A kind whose size changes without its record, and how often it is looked at. */
  grows?: { kind: string; lookEveryMs: number };
  /** What a resource uses by its record. */
  observe(resource: Resource, sight: Sight): Observation | Promise<Observation>;
  onError(error: unknown): void;
}

/** How a resource comes to be looked at: it may be older than this server, it was made since, or it is known. */
export type Sight = "found" | "new" | "again";

interface Said {
  metered: MeteredResource;
  rates: Rates;
}

export async function startUsageObserver(options: UsageObserverOptions): Promise<Running> {
  const { store, meter, kinds, alone, grows, observe, onError } = options;
  const said = new Map<string, Said>();
  const accounts = new Map<string, string>();
  /** Resources made since the start that were not looked at yet, with how often they have changed. */
  const made = new Map<string, number>();

  /** The account of a workspace never changes. */
  async function accountOf(workspace: string): Promise<string | null> {
    const known = accounts.get(workspace) ?? (await store.workspaces.get(workspace))?.accountId;
    if (known !== undefined) accounts.set(workspace, known);
    return known ?? null;
  }

  /** What is part of another resource stands on the bill under that one's name. */
  const billedName = async ({ parent, name }: Resource): Promise<string> =>
    (parent === "" ? null : await store.resources.getAcrossWorkspaces(parent))?.name ?? name;

  async function tell(uid: string, metered: MeteredResource, { rates, ...when }: Observation): Promise<void> {
    const before = said.get(uid)?.rates ?? {};
    const changed = (Object.keys({ ...before, ...rates }) as DimensionName[]).filter(
      (dimension) => (before[dimension] ?? 0) !== (rates[dimension] ?? 0),
    );
    await Promise.all(changed.map((dimension) => meter.setRate(metered, dimension, rates[dimension] ?? 0, when)));
    said.set(uid, { metered, rates });
  }

  async function look(uid: string): Promise<void> {
    const resource = await store.resources.getAcrossWorkspaces(uid);
    const before = said.get(uid);
    if (!resource) {
      if (before) await tell(uid, before.metered, { rates: {} });
      said.delete(uid);
      made.delete(uid);
      return;
    }
    const accountId = before?.metered.accountId ?? (await accountOf(resource.workspace));
    // A workspace on its way out has no account to bill any more; what ran in it is told by its own changes.
    if (accountId === null) return;
    const { workspace } = resource;
    const name = before?.metered.name ?? (await billedName(resource));
    const sight = before ? "again" : made.has(uid) ? "new" : "found";
    await tell(uid, { accountId, workspace, name, uuid: uid }, await observe(resource, sight));
    made.delete(uid);
  }

  const queue = new KeyedQueue({
    concurrency: CONCURRENCY,
    work: async (uid) => {
      await look(uid);
      return undefined;
    },
    onError: (_uid, error) => {
      // A meter that is stopping, or waits for its database, is told again later.
      if (!(error instanceof PlatformError && error.code === "unavailable")) onError(error);
    },
  });
  const fresh = new Set<string>();
  const later = new Gathering({ quietMs: QUIET_MS, busyMaxMs: BUSY_MAX_MS, release: (uid) => queue.add(uid) });
  const unsubscribe = store.resources.onChange((kind, uid) => {
    if (!kinds.includes(kind)) return;
    // One that grows without its record has nothing to be metered when it is made; later changes are looked at.
    if (kind === grows?.kind && !said.has(uid) && !fresh.delete(uid)) return void fresh.add(uid);
    if (said.has(uid)) return queue.add(uid);
    const changes = (made.get(uid) ?? 0) + 1;
    made.set(uid, changes);
    if (alone && changes <= CHANGES_OF_A_START) later.add(uid);
    else queue.add(uid);
  });
  const lookAtAll = async (kind: string): Promise<void> => {
    for (let after = ""; ; ) {
      const page = await store.resources.listAcrossWorkspaces(kind, after, PAGE);
      for (const { uid } of page) queue.add(uid);
      after = page.at(-1)?.uid ?? "";
      if (page.length < PAGE) break;
    }
  };
  for (const kind of kinds) await lookAtAll(kind);
  const lookAtGrown = (kind: string): void => {
    fresh.clear(); // they are looked at now
    lookAtAll(kind).catch(onError);
  };
  const timer = grows && setInterval(() => lookAtGrown(grows.kind), grows.lookEveryMs).unref();
  return {
    async stop() {
      clearInterval(timer);
      unsubscribe();
      later.stop();
      await queue.stop();
    },
  };
}
