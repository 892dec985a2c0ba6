/**
 * The reconcile loop: a change or the resync timer → keyed queue → lease → read → observe → plan → act. It is told
 * which resource to look at, never what happened to it, so a lost or doubled message does no harm.
 */
import { DELAYED, isDelayed } from "../contract/delayed.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Behaviour, Deps, ReconcileContext, Reconciler } from "../kinds/port.ts";
import { isDiskFull } from "../lib/disk/disk-full.ts";
import { KeyedQueue, type Rest } from "../lib/keyed-queue.ts";
import type { Running } from "../lib/lifecycle.ts";
import { SECOND_MS } from "../lib/time/clock.ts";
import type { Resource } from "../store/resources/resource.ts";
import { HeldLeases } from "./held-leases.ts";

const RESYNC_MS = 30 * SECOND_MS;
/** Resources per page of a resync. */
const RESYNC_PAGE = 500;
/** Resources of one kind handled concurrently; most of the time is waiting. */
const CONCURRENCY = 64;
/** Attempts before an error is recorded: transient errors are gone by the third, within a second or two. */
const ATTEMPTS_BEFORE_TOLD = 3;
/** How soon to look again at a resource that another server is working on. */
const BUSY_ELSEWHERE_MS = 5 * SECOND_MS;

export interface LoopOptions {
  deps: Deps;
  behaviours: readonly Behaviour[];
  /** Distinguishes this server from others on the same database. */
  holder: string;
  /** Called before a resource of this node is observed; returns the resource as it is then. */
  welcome?(resource: Resource): Promise<Resource>;
}

export async function startReconcileLoop({ deps, behaviours, holder, welcome }: LoopOptions): Promise<Running> {
  const { store, log, nodes } = deps;
  const placed = new Set(behaviours.filter(({ kind }) => kind.placed).map(({ kind }) => kind.name));
  /** What belongs to another node is left to that node. */
  const isMine = ({ kind, node }: Resource): boolean => !placed.has(kind) || nodes.owns(node);
  const reconcilers = new Map(
    behaviours.flatMap((behaviour) =>
      behaviour.reconciler ? [[behaviour.kind.name, behaviour.reconciler] as const] : [],
    ),
  );
  // A SQLite file has only one server, so leases are needed with PostgreSQL only.
  const shared = store.database.dialect === "postgres";
  const onLeaseError = (error: unknown): void => log.warn({ err: error }, "leases could not be renewed, trying again");
  const leases = shared ? new HeldLeases(store.leases, holder, onLeaseError) : null;

  const work = async (key: string, signal: AbortSignal): Promise<number | Rest | undefined> => {
    const found = await store.resources.getAcrossWorkspaces(key);
    const reconciler = found && reconcilers.get(found.kind);
    if (!found || !reconciler || found.retired || !isMine(found)) return undefined;
    const resource = welcome && placed.has(found.kind) ? await welcome(found) : found;
    if (!leases) return reconcileOnce(reconciler, resource, contextOf(resource, signal));
    const lease = await leases.take(`reconcile/${key}`);
    if (!lease) return BUSY_ELSEWHERE_MS;
    try {
      return await reconcileOnce(reconciler, resource, contextOf(resource, AbortSignal.any([signal, lease.lost])));
    } finally {
      await lease.release();
    }
  };
  const waitedFor = new Set(behaviours.filter(({ ready }) => ready).map(({ kind }) => kind.name));
  const onError = (uid: string, error: unknown, attempt: number): void => {
    log.warn({ err: error, uid, attempt }, "reconciling failed, trying again");
    if (attempt + 1 === ATTEMPTS_BEFORE_TOLD)
      void tellDelay(uid, error).catch((cause: unknown) => log.warn({ err: cause, uid }, "a delay could not be told"));
  };
  /** Records why the first start is delayed, for callers that wait for it; the loop keeps retrying. */
  const tellDelay = async (uid: string, error: unknown): Promise<void> => {
    const resource = await store.resources.getAcrossWorkspaces(uid);
    if (!resource || resource.retired || !waitedFor.has(resource.kind)) return;
    await store.resources.update(resource.workspace, uid, (current) =>
      current.retired || current.status !== "DEPLOYING" || isDelayed(current)
        ? null
        : { event: { type: DELAYED, status: "DEPLOYING", message: `It has not started: ${reasonOf(error)}` } },
    );
  };
  // Each kind has its own queue, so that a kind that waits for another does not block it.
  const queues = new Map(
    [...reconcilers.keys()].map((kind) => [kind, new KeyedQueue({ concurrency: CONCURRENCY, work, onError })]),
  );
  const add = (kind: string, uid: string): void => queues.get(kind)?.add(uid);
  const onDelete = new Set(
    behaviours.filter(({ reconciled, timed }) => reconciled === "on-delete" && !timed).map(({ kind }) => kind.name),
  );
  const heard = (kind: string, uid: string): void => {
    if (!onDelete.has(kind) || !store.resources.isKnownToStay(uid)) add(kind, uid);
  };

  const contextOf = ({ workspace, uid }: Resource, signal: AbortSignal): ReconcileContext => ({
    deps,
    signal,
    record: (change) =>
      store.resources.update(workspace, uid, (current) =>
        current.retired || !isMine(current) ? null : change(current),
      ),
  });

  const resync = async (): Promise<void> => {
    for (const { kind, uid } of await store.resources.listUnsettledAcrossWorkspaces(
      [...queues.keys()],
      RESYNC_PAGE,
      nodes.self.id,
    ))
      add(kind, uid);
  };
  const unsubscribe = store.resources.onChange(heard);
  const timer = setInterval(
    () => void resync().catch((error: unknown) => log.warn({ err: error }, "resync failed")),
    RESYNC_MS,
  ).unref();
  const owned = shared && !nodes.shared;
  for (const kind of queues.keys()) await lookAtAll(kind, owned && placed.has(kind) ? nodes.self.id : null, deps, add);

  return {
    async stop() {
      clearInterval(timer);
      unsubscribe();
      await Promise.all([...queues.values()].map((queue) => queue.stop()));
      leases?.stop();
    },
  };
}

/** Only messages of a PlatformError are shown to callers; others may name files of the machine and go to the log. */
function reasonOf(error: unknown): string {
  if (error instanceof PlatformError) return error.message;
  const { code } = error as { code?: unknown };
  return `an internal failure${typeof code === "string" ? ` (${code})` : ""}, which the server's log tells`;
}

/**
 * After a start, every resource of a kind is observed once: the state may have changed while the server was down. With
 * a node: only the resources of that node.
 */
async function lookAtAll(
  kind: string,
  node: string | null,
  { store }: Deps,
  add: (kind: string, uid: string) => void,
): Promise<void> {
  for (let after = ""; ; ) {
    const page = await store.resources.listUidsAcrossWorkspaces(kind, { after, limit: RESYNC_PAGE, node });
    for (const uid of page) add(kind, uid);
    after = page.at(-1) ?? "";
    if (page.length < RESYNC_PAGE) break;
  }
}

async function reconcileOnce(
  reconciler: Reconciler,
  resource: Resource,
  context: ReconcileContext,
): Promise<number | Rest | undefined> {
  let changes = 0;
  /** Each change is announced once; one that was decided against is not. */
  const record: ReconcileContext["record"] = async (change) => {
    let changed = false;
    const recorded = await context.record((current) => {
      const decided = change(current);
      changed = decided !== null;
      return decided;
    });
    if (changed) changes += 1;
    return recorded;
  };
  try {
    const observed = await reconciler.observe(resource, context);
    const { steps, againMs, settles } = reconciler.plan(resource, observed, context.deps.clock.now());
    for (const step of steps) {
      context.signal.throwIfAborted();
      await reconciler.act(step, resource, { ...context, record });
    }
    return settles && againMs !== undefined ? { againMs, ownAdditions: changes } : againMs;
  } catch (error) {
    // A delete writes to disk before it frees space; the freed reserve lets its next attempt succeed.
    if (resource.deletedAt !== null && isDiskFull(error)) context.deps.disk.makeRoom();
    if (!(error instanceof PlatformError) || error.status >= 500) throw error;
    await context.record((current) => ({
      status: "FAILED",
      observedGeneration: resource.generation,
      ...(current.status === "FAILED" && current.events.at(-1)?.message === error.message
        ? {}
        : { event: { type: "failed", status: "FAILED", message: error.message } }),
    }));
    return undefined;
  }
}
