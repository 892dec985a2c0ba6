/** A volume's storage is made when it is first attached; here it goes. */
import { defineReconciler } from "../port.ts";

type Step = { do: "destroy" };

export const volumeReconciler = defineReconciler<null, Step>({
  observe: async () => null,
  plan: (volume) => ({ steps: volume.deletedAt === null ? [] : [{ do: "destroy" }] }),
  async act(_step, { workspace, uid }, { deps }) {
    await deps.driver.destroyVolume(uid);
    // Its record stays to be looked at for a while, as that of a sandbox does.
    await deps.store.resources.update(workspace, uid, (current) => ({
      retire: true,
      status: "TERMINATED",
      observedGeneration: current.generation,
      event: { type: "terminated", message: "Gone, with its files." },
    }));
  },
});
