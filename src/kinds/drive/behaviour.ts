import { PlatformError } from "../../contract/errors.ts";
import { isLimited } from "../../lib/schemas/drive-quota.ts";
import { refuseWithout } from "../../node/capabilities/need.ts";
import { type Behaviour, type Platform, workspaceOf } from "../port.ts";
import { chosenRegion } from "../region.ts";
import { recordedUses } from "./drive-uses.ts";
import { requireSamePermissions } from "./grants.ts";
import { type Drive, drive } from "./kind.ts";
import { driveReconciler } from "./reconcile.ts";
import { driveS3Handlers, s3UrlOf } from "./s3.ts";
import { driveTokenHandlers } from "./tokens.ts";
import { quotaRefusal } from "./workspace-use.ts";

export const driveBehaviour: Behaviour<Drive> = {
  kind: drive,
  reconciled: "on-delete",
  awaitDelete: true,
  reconciler: driveReconciler,
  async prepare(input, context) {
    const { current, deps } = context;
    if (current) return requireSamePermissions(input, context);
    await refuseWithout(deps.here.driver, "drives");
    await requireQuota(workspaceOf(context.call).name, deps);
    input.spec.region = chosenRegion("spec.region", input.spec.region, null, deps.settings);
  },
  deleted: (resource) => ({ message: `Drive '${resource.name}' is deleted.`, name: resource.name }),
  present(wire, resource, { deps }) {
    const s3Url = s3UrlOf(resource, deps);
    const { usedBytes, usedObjects } = resource.state;
    const counted = usedBytes === undefined ? {} : { usedBytes, usedObjects };
    if (s3Url !== null || usedBytes !== undefined) wire.state = { ...(s3Url !== null && { s3Url }), ...counted };
  },
  handlers: [...driveTokenHandlers, ...driveS3Handlers],
};

/** A workspace whose drives are full makes no further one. */
async function requireQuota(workspace: string, deps: Pick<Platform, "store" | "settings">): Promise<void> {
  if (!isLimited(deps.settings.driveQuota)) return;
  const { bytes, objects } = await recordedUses(workspace, deps);
  const refusal = quotaRefusal(deps.settings.driveQuota, { bytes: bytes + 1, objects: objects + 1 });
  if (refusal !== null) throw new PlatformError("insufficient_storage", refusal);
}
