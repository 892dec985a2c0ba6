/**
 * Snapshots of sandboxes: the record is written first, then the driver saves the files. Unreferenced files are swept.
 */

import { notFound } from "../../contract/errors.ts";
import { MINUTE_MS, SECOND_MS } from "../../lib/time/clock.ts";
import { need, refuseWithout } from "../../node/capabilities/need.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import { application as applicationKind } from "../application/kind.ts";
import type { KindTask } from "../kind-task.ts";
import { locate } from "../place.ts";
import { type Behaviour, type Deps, implement, type Reconciler } from "../port.ts";
import { sandbox as sandboxKind } from "../sandbox/kind.ts";
import type { SnapshotState } from "./copy-rules.ts";
import { type Snapshot, snapshot } from "./kind.ts";
import { requireMemory } from "./memory.ts";
import { snapshotDelete } from "./operations.ts";
import { newSnapshotId, phaseOf, reasonOf } from "./phase.ts";

/**
 * How long a request waits for the copy. It is quick where the file system shares blocks, otherwise it depends on size.
 */
const TAKE_WAIT_MS = 60 * SECOND_MS;
const SWEEP_MS = MINUTE_MS;
/** Age before the sweep removes unreferenced files: the record of fresh files may not have been written yet. */
const UNNAMED_MAX_MS = 10 * MINUTE_MS;
const PAGE = 500;
const MB = 2 ** 20;

export const snapshotBehaviour: Behaviour<Snapshot> = {
  kind: snapshot,
  async prepare(input, { deps, parents }) {
    await refuseWithout(deps.here.driver, "snapshots");
    const source = parents.at(-1);
    if (input.spec.memory && source) await requireMemory(ofKind(sandboxKind, source), deps.here.driver);
    input.metadata.name = newSnapshotId();
  },
  ready: { until: (resource) => phaseOf(resource) !== "pending", waitMs: TAKE_WAIT_MS },
  present(wire, resource, { parents }) {
    const { error } = resource.state;
    Object.assign(wire.spec, {
      status: phaseOf(resource),
      ...(error === undefined ? {} : { error }),
      sandboxName: parents.at(-1)?.name,
      workspace: resource.workspace,
      createdBy: resource.createdBy,
    });
  },
  reconciler: {
    observe: async () => null,
    plan: (resource) => ({ steps: phaseOf(resource) === "pending" && resource.deletedAt === null ? ["take"] : [] }),
    async act(_step, { name, parent, spec }, { deps, record }) {
      const take = async (): Promise<SnapshotState> => {
        const able = await need(deps.driver, spec.memory ? "memorySnapshots" : "snapshots");
        const { sizeBytes } = await able.take(parent, name);
        return { phase: "ready", storedMb: Math.ceil(sizeBytes / MB) };
      };
      const taken = await take().catch((error: unknown): SnapshotState => {
        deps.log.warn({ err: error, sandbox: parent, snapshot: name }, "a snapshot failed");
        return { phase: "failed", error: reasonOf(error) };
      });
      await record((current) => ({ state: { ...current.state, ...taken } }));
    },
  } satisfies Reconciler<null, "take", Snapshot>,
  handlers: [
    implement(snapshotDelete, async (call, deps) => {
      const { scope } = await locate(snapshot, call, deps);
      const id = call.params.snapshotId ?? "";
      const found = await deps.store.resources.get(scope, id);
      if (!found) throw notFound(`snapshot '${id}'`);
      await deps.store.resources.delete(scope.workspace, found.uid);
      return null;
    }),
  ],
};

export const snapshotTasks = (deps: Deps): KindTask[] => [
  {
    name: `sweep-snapshots/${deps.settings.nodeId}`,
    everyMs: SWEEP_MS,
    run: (signal) => sweepSnapshots(deps, signal),
  },
];

/** Removes files that no snapshot record and no fork refers to. */
export async function sweepSnapshots(deps: Deps, signal: AbortSignal): Promise<void> {
  const snapshots = await deps.driver.capability("snapshots");
  if (snapshots === null) return;
  const old = (await snapshots.list()).filter(
    ({ createdAt }) => Date.parse(createdAt) < deps.clock.now() - UNNAMED_MAX_MS,
  );
  if (old.length === 0) return;
  const named = new Set<string>();
  await each(snapshot.name, deps, ({ name }) => named.add(name));
  await each(sandboxKind.name, deps, (sandbox) => {
    const origin = sandbox.retired ? undefined : ofKind(sandboxKind, sandbox).state.fork;
    if (origin) named.add(origin.snapshot);
  });
  const applications: Resource[] = [];
  await each(applicationKind.name, deps, (application) => applications.push(application));
  for (const { workspace, uid } of applications)
    for (const { spec } of await deps.store.resources.revisionsOf(workspace, uid)) named.add(String(spec.snapshot));
  for (const { id } of old) {
    signal.throwIfAborted();
    if (!named.has(id)) await snapshots.remove(id);
  }
}

async function each(kind: string, { store }: Deps, visit: (resource: Resource) => void): Promise<void> {
  for (let after = ""; ; ) {
    const page = await store.resources.listAcrossWorkspaces(kind, after, PAGE);
    for (const resource of page) visit(resource);
    after = page.at(-1)?.uid ?? "";
    if (page.length < PAGE) return;
  }
}
