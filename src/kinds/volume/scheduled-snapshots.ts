/**
 * Snapshots that a volume's `spec.snapshots` asks for. The time of the last one is claimed in the record before the
 * snapshot is made, so a server that dies in between leaves one out and takes none twice. A time that passed while the
 * server was down is made up for once. Only the record of the snapshot is made here; its own reconciler copies the
 * files, so that a slow copy holds up no volume.
 */
import { uuidv7 } from "../../lib/ids.ts";
import { MINUTE_MS } from "../../lib/time/clock.ts";
import { cronTimes } from "../../lib/time/cron.ts";
import { ofKind, type Resource } from "../../store/resources/resource.ts";
import type { Modification } from "../../store/resources/resources.ts";
import { refuseOnFullDisk } from "../new-work.ts";
import type { Deps, Plan, ReconcileContext } from "../port.ts";
import { newSnapshotId, phaseOf, reasonOf } from "../snapshot/phase.ts";
import { SCHEDULED_KEPT_DEFAULT, type Volume, volume as volumeKind } from "./kind.ts";

export type SnapshotStep = { do: "begin" | "snapshot"; atMs: number };

/** Name of the kind in records; its declaration imports that of the volume. */
const SNAPSHOT_KIND = "volumesnapshot";
/** As its kind says. */
const SNAPSHOTS_MAX = 50;
/** Longest wait between looks: the system clock may be changed, and timers have a maximum delay. */
const LOOK_AGAIN_MAX_MS = 12 * 60 * MINUTE_MS;
const ACTOR = "the schedule";

export function planSnapshots({ spec, state, retired }: Volume, nowMs: number): Plan<SnapshotStep> {
  const wanted = spec.snapshots;
  if (!wanted || retired) return { steps: [] };
  const since = state.snapshotsSince;
  if (since?.schedule !== wanted.schedule) return { steps: [{ do: "begin", atMs: nowMs }] };
  const next = cronTimes(wanted.schedule, "UTC")(since.atMs);
  if (next === null) return { steps: [] };
  if (next > nowMs) return { steps: [], againMs: Math.min(next - nowMs, LOOK_AGAIN_MAX_MS) };
  return { steps: [{ do: "snapshot", atMs: nowMs }] };
}

export async function takeScheduled(
  step: SnapshotStep,
  volume: Volume,
  { deps, record }: Pick<ReconcileContext<Volume>, "deps" | "record">,
): Promise<void> {
  const schedule = volume.spec.snapshots?.schedule;
  if (schedule === undefined) return;
  const before = volume.state.snapshotsSince?.atMs;
  let claimed = false;
  await record((current) => {
    const isSame = current.spec.snapshots?.schedule === schedule;
    claimed = current.deletedAt === null && isSame && current.state.snapshotsSince?.atMs === before;
    return claimed ? { state: { ...current.state, snapshotsSince: { schedule, atMs: step.atMs } } } : null;
  });
  if (!claimed || step.do === "begin") return;
  if (await isCopying(volume, deps)) return;
  try {
    refuseOnFullDisk(deps);
    await create(volume, step.atMs, deps);
  } catch (error) {
    await record(() => failed(reasonOf(error)));
    await keepNewest(volume, deps);
  }
}

/** A time that passes while the last scheduled snapshot is still copied is left out. */
const isCopying = async ({ workspace, uid }: Resource, { store }: Deps): Promise<boolean> =>
  (await store.resources.childrenOf(workspace, uid, SNAPSHOT_KIND)).some(
    (each) => each.state.scheduled === true && phaseOf(each) === "pending",
  );

const failed = (reason: string): Modification => ({
  event: { type: "snapshot-failed", message: `The scheduled snapshot failed: ${reason}` },
});

/** Called when a snapshot is over: tells a failure to the volume, and removes what the schedule no longer keeps. */
export async function scheduledIsOver(snapshot: Resource, error: string | undefined, deps: Deps): Promise<void> {
  const { workspace, parent, state } = snapshot;
  if (state.scheduled !== true) return;
  if (error !== undefined) await deps.store.resources.update(workspace, parent, () => failed(error));
  const volume = await deps.store.resources.getByUid(workspace, parent);
  if (volume) await keepNewest(ofKind(volumeKind, volume), deps);
}

/** Snapshots that people took stay, and so do those that are whole, whatever fails later. */
async function keepNewest({ workspace, uid, spec }: Volume, { store }: Deps): Promise<void> {
  const { keep = SCHEDULED_KEPT_DEFAULT } = spec.snapshots ?? {};
  const all = await store.resources.childrenOf(workspace, uid, SNAPSHOT_KIND);
  const inPhase = (phase: string): Resource[] =>
    all.filter((each) => each.state.scheduled === true && phaseOf(each) === phase);
  for (const old of [...inPhase("ready").slice(0, -keep), ...inPhase("failed").slice(0, -1)])
    await store.resources.delete(workspace, old.uid);
}

async function create({ workspace, uid, node }: Resource, atMs: number, { store, clock }: Deps): Promise<Resource> {
  const name = newSnapshotId();
  const { resource } = await store.resources.create({
    ...{ workspace, kind: SNAPSHOT_KIND, parent: uid, uid: uuidv7(clock.now()), name, countMax: SNAPSHOTS_MAX },
    ...{ metadata: {}, spec: { name: `scheduled-${new Date(atMs).toISOString()}` }, secrets: {} },
    ...{ state: { scheduled: true }, status: null, events: [{ type: "created", message: `Taken by ${ACTOR}.` }] },
    ...{ revision: false, actor: ACTOR, settled: true, node },
  });
  return resource;
}
