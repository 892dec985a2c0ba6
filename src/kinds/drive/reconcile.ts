/** Removes the folder of a deleted drive. The folder is made when the drive is first mounted. */
import { defineReconciler } from "../port.ts";

type Step = { do: "destroy" };

export const driveReconciler = defineReconciler<null, Step>({
  observe: async () => null,
  plan: (drive) => ({ steps: drive.deletedAt === null ? [] : [{ do: "destroy" }] }),
  async act(_step, { workspace, uid }, { deps }) {
    await (await deps.driver.capability("drives"))?.destroy(uid);
    await deps.store.resources.delete(workspace, uid);
  },
});
