/**
 * Reports usage rates from resource records to a meter: at every change of a resource, and once for every resource at
 * the start. It remembers only what it reported last, so lost or repeated notifications do no harm.
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

/** Records read per query at the start. */
const PAGE = 500;
/** Records processed concurrently: the meter puts their rates into one commit. */
const CONCURRENCY = 256;
/**
 * New resources are metered when none has been created for QUIET_MS, or after BUSY_MAX_MS when creates never stop, so
 * that metering does not delay a burst of creates. They are billed from their actual start all the same.
 */
const QUIET_MS = 250;
const BUSY_MAX_MS = 1_000;
/**
 * Changes of a resource until it runs: created, then running. A third change may begin its end and is metered at once.
 */
const CHANGES_OF_A_START = 2;

export interface Observation {
  rates: Rates;
  /** Start of the rates. Default: now. */
  atMs?: number;
  /** See Meter.setRate. */
  resume?: boolean;
}

export interface UsageObserverOptions {
  store: Pick<Store, "resources" | "workspaces">;
  meter: Pick<Meter, "setRate">;
  kinds: readonly string[];
  /** No other meter meters the same resources, so new ones may wait a moment. */
  alone: boolean;
  /** A kind whose size changes without a change of its record, and how often it is measured. */
  grows?: { kind: string; lookEveryMs: number };
  /** Returns the usage rates of a resource. */
  observe(resource: Resource, sight: Sight): Observation | Promise<Observation>;
  onError(error: unknown): void;
}

/** Why a resource is observed: found at the start or later, created since the start, or already known. */
export type Sight = "found" | "new" | "again";

interface Said {
  metered: MeteredResource;
  rates: Rates;
}

export async function startUsageObserver(options: UsageObserverOptions): Promise<Running> {
  const { store, meter, kinds, alone, grows, observe, onError } = options;
  const said = new Map<string, Said>();
  const accounts = new Map<string, string>();
  /** Resources created since the start and not observed yet, with the number of their changes. */
  const made = new Map<string, number>();

  /** Cached: the account of a workspace never changes. */
  async function accountOf(workspace: string): Promise<string | null> {
    const known = accounts.get(workspace) ?? (await store.workspaces.get(workspace))?.accountId;
    if (known !== undefined) accounts.set(workspace, known);
    return known ?? null;
  }

  /** A nested resource is billed under its parent's name. */
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
    // A workspace that is being deleted has no account to bill; rates already reported end with their resources.
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
      // The meter is stopping or waits for its database: the queue retries.
      if (!(error instanceof PlatformError && error.code === "unavailable")) onError(error);
    },
  });
  const fresh = new Set<string>();
  const later = new Gathering({ quietMs: QUIET_MS, busyMaxMs: BUSY_MAX_MS, release: (uid) => queue.add(uid) });
  const unsubscribe = store.resources.onChange((kind, uid) => {
    if (!kinds.includes(kind)) return;
    // A new resource of a growing kind is still empty: skip its first change and observe the later ones.
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
    fresh.clear(); // all of them are observed now
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
