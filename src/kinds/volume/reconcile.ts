/** Removes the storage of a deleted volume. The storage is made when the volume is first attached. */
import { defineReconciler } from "../port.ts";

type Step = { do: "destroy" };

export const volumeReconciler = defineReconciler<null, Step>({
  observe: async () => null,
  plan: (volume) => ({ steps: volume.deletedAt === null ? [] : [{ do: "destroy" }] }),
  async act(_step, { workspace, uid }, { deps }) {
    await (await deps.driver.capability("volumes"))?.destroy(uid);
    // The record stays readable for a while, like that of a sandbox.
    await deps.store.resources.update(workspace, uid, (current) => ({
      retire: true,
      status: "TERMINATED",
      observedGeneration: current.generation,
      event: { type: "terminated", message: "Gone, with its files." },
    }));
  },
});
