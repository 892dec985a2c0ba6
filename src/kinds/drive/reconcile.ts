/** Removes the folder of a deleted drive. The folder is made when the drive is first mounted. */
import type { Reconciler } from "../port.ts";
import type { Drive } from "./kind.ts";

type Step = { do: "destroy" };

export const driveReconciler: Reconciler<null, Step, Drive> = {
  observe: async () => null,
  plan: (drive) => ({ steps: drive.deletedAt === null ? [] : [{ do: "destroy" }] }),
  async act(_step, { workspace, uid }, { deps }) {
    await (await deps.driver.capability("drives"))?.destroy(uid);
    await deps.store.resources.delete(workspace, uid);
  },
};
