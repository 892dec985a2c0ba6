import { refuseWithout } from "../../node/capabilities/need.ts";
import type { Behaviour } from "../port.ts";
import { chosenRegion } from "../region.ts";
import { requireSamePermissions } from "./grants.ts";
import { drive } from "./kind.ts";
import { driveReconciler } from "./reconcile.ts";
import { driveS3Handlers, s3UrlOf } from "./s3.ts";
import { driveTokenHandlers } from "./tokens.ts";

export const driveBehaviour: Behaviour = {
  kind: drive,
  reconciled: "on-delete",
  awaitDelete: true,
  reconciler: driveReconciler,
  async prepare(input, context) {
    const { current, deps } = context;
    if (current) return requireSamePermissions(input, context);
    await refuseWithout(deps.here.driver, "drives");
    input.spec.region = chosenRegion("spec.region", input.spec.region, null, deps.settings);
  },
  deleted: (resource) => ({ message: `Drive '${resource.name}' is deleted.`, name: resource.name }),
  present(wire, resource, { deps }) {
    const s3Url = s3UrlOf(resource, deps);
    if (s3Url !== null) wire.state = { s3Url };
  },
  handlers: [...driveTokenHandlers, ...driveS3Handlers],
};
