/** Removes the storage of a deleted volume, and takes snapshots of a volume when they are due. */
import type { Reconciler } from "../port.ts";
import type { Volume } from "./kind.ts";
import { planSnapshots, type SnapshotStep, takeScheduled } from "./scheduled-snapshots.ts";

type Step = { do: "destroy" } | SnapshotStep;

export const volumeReconciler: Reconciler<null, Step, Volume> = {
  observe: async () => null,
  plan: (volume, _observed, nowMs) =>
    volume.deletedAt === null ? planSnapshots(volume, nowMs) : { steps: [{ do: "destroy" }] },
  async act(step, volume, context) {
    if (step.do !== "destroy") return takeScheduled(step, volume, context);
    const { workspace, uid } = volume;
    const { deps } = context;
    await (await deps.driver.capability("volumes"))?.destroy(uid);
    // The record stays readable for a while, like that of a sandbox.
    await deps.store.resources.update(workspace, uid, (current) => ({
      retire: true,
      status: "TERMINATED",
      observedGeneration: current.generation,
      event: { type: "terminated", message: "Gone, with its files." },
    }));
  },
};
