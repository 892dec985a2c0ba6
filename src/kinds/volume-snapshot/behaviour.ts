/** Snapshots of volumes: the record is written first, then the driver copies the volume. Unnamed copies are swept. */

import { notFound, PlatformError } from "../../contract/errors.ts";
import { FairShares, type Refusal } from "../../lib/fair-shares.ts";
import { MINUTE_MS, SECOND_MS } from "../../lib/time/clock.ts";
import { need, refuseWithout } from "../../node/capabilities/need.ts";
import { ofKind } from "../../store/resources/resource.ts";
import type { KindTask } from "../kind-task.ts";
import { locate } from "../place.ts";
import { type Behaviour, type Deps, implement, type Reconciler } from "../port.ts";
import type { SnapshotState } from "../snapshot/copy-rules.ts";
import { newSnapshotId, phaseOf, reasonOf } from "../snapshot/phase.ts";
import { volume as volumeKind } from "../volume/kind.ts";
import { scheduledIsOver } from "../volume/scheduled-snapshots.ts";
import { makeStorage } from "../volume/storage.ts";
import { type VolumeSnapshot, volumeSnapshot } from "./kind.ts";
import { volumeSnapshotDelete } from "./operations.ts";

/** How long a request waits for the copy, which goes on afterwards. */
const TAKE_WAIT_MS = 60 * SECOND_MS;
const SWEEP_MS = MINUTE_MS;
/** Age before the sweep removes a copy without a record: a copy for an export has none. */
const UNNAMED_MAX_MS = 10 * MINUTE_MS;
const PAGE = 500;
/** Copies at once, of all workspaces and of one: most of the time is the disk's, which more copies do not speed up. */
const COPIES_MAX = 32;
const WORKSPACE_COPIES_MAX = 8;
/** How soon to look again at a snapshot whose workspace has no place for another copy. */
const NO_PLACE_MS = SECOND_MS;
const MB = 2 ** 20;

export const volumeSnapshotBehaviour: Behaviour<VolumeSnapshot> = {
  kind: volumeSnapshot,
  async prepare(input, { deps }) {
    await refuseWithout(deps.here.driver, "volumeCopies");
    input.metadata.name = newSnapshotId();
  },
  ready: { until: (resource) => phaseOf(resource) !== "pending", waitMs: TAKE_WAIT_MS },
  present(wire, resource, { parents }) {
    const { error, storedMb } = resource.state;
    const volume = parents.at(-1);
    Object.assign(wire.spec, {
      status: phaseOf(resource),
      ...(error === undefined ? {} : { error }),
      ...(storedMb === undefined ? {} : { storedMb }),
      volumeName: volume?.name,
      size: volume?.spec.size,
      workspace: resource.workspace,
      createdBy: resource.createdBy,
    });
  },
  reconciler: {
    observe: async ({ workspace }, { deps }) => copiesOf(deps.store).refusalFor(workspace),
    plan: (resource, refusal) => {
      if (phaseOf(resource) !== "pending" || resource.deletedAt !== null) return { steps: [] };
      return refusal === null ? { steps: ["take"] } : { steps: [], againMs: NO_PLACE_MS };
    },
    async act(_step, snapshot, { deps, record }) {
      const { workspace, name, parent } = snapshot;
      const copies = copiesOf(deps.store);
      // Retried: the place was free when the snapshot was observed.
      if (copies.enter(workspace) !== null)
        throw new PlatformError("unavailable", "Too many volumes are being copied.");
      let taken: SnapshotState;
      try {
        taken = await take(workspace, parent, name, deps);
      } catch (error) {
        deps.log.warn({ err: error, volume: parent, snapshot: name }, "a snapshot of a volume failed");
        taken = { phase: "failed", error: reasonOf(error) };
      } finally {
        copies.leave(workspace);
      }
      await record((current) => ({ state: { ...current.state, ...taken } }));
      await scheduledIsOver(snapshot, taken.error, deps);
    },
  } satisfies Reconciler<Refusal | null, "take", VolumeSnapshot>,
  handlers: [
    implement(volumeSnapshotDelete, async (call, deps) => {
      const { scope } = await locate(volumeSnapshot, call, deps);
      const id = call.params.snapshotId ?? "";
      const found = await deps.store.resources.get(scope, id);
      if (!found) throw notFound(`snapshot '${id}'`);
      await deps.store.resources.delete(scope.workspace, found.uid);
      return null;
    }),
  ],
};

/** Copies under way on this server, by workspace. */
const copying = new WeakMap<Deps["store"], FairShares>();

function copiesOf(store: Deps["store"]): FairShares {
  const known = copying.get(store) ?? new FairShares(COPIES_MAX, WORKSPACE_COPIES_MAX);
  copying.set(store, known);
  return known;
}

async function take(workspace: string, volumeUid: string, id: string, deps: Deps): Promise<SnapshotState> {
  const volume = await deps.store.resources.getByUid(workspace, volumeUid);
  if (!volume) throw notFound("The volume");
  const copies = await need(deps.driver, "volumeCopies");
  // A volume that was never attached has no storage yet.
  await makeStorage(ofKind(volumeKind, volume), deps);
  const { usedBytes } = await copies.take(volume.uid, id);
  return { phase: "ready", storedMb: Math.ceil(usedBytes / MB) };
}

export const volumeSnapshotTasks = (deps: Deps): KindTask[] => [
  {
    name: `sweep-volume-copies/${deps.settings.nodeId}`,
    everyMs: SWEEP_MS,
    run: (signal) => sweepVolumeCopies(deps, signal),
  },
];

/** Removes copies that no record refers to. */
export async function sweepVolumeCopies({ driver, store, clock, log }: Deps, signal: AbortSignal): Promise<void> {
  const copies = await driver.capability("volumeCopies");
  const all = (await copies?.list()) ?? [];
  const old = all.filter(({ createdAt }) => Date.parse(createdAt) < clock.now() - UNNAMED_MAX_MS);
  if (old.length === 0) return;
  const named = new Set<string>();
  for (let after = ""; ; ) {
    const page = await store.resources.listAcrossWorkspaces(volumeSnapshot.name, after, PAGE);
    for (const { name } of page) named.add(name);
    after = page.at(-1)?.uid ?? "";
    if (page.length < PAGE) break;
  }
  for (const { id } of old) {
    signal.throwIfAborted();
    if (named.has(id)) continue;
    await copies?.remove(id).catch((error: unknown) => log.debug({ err: error, copy: id }, "a copy is still read"));
  }
}
