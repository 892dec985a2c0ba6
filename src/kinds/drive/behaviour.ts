import { refuseWithout } from "../../node/capabilities/need.ts";
import type { Behaviour } from "../port.ts";
import { chosenRegion } from "../region.ts";
import { requireSamePermissions } from "./grants.ts";
import { drive } from "./kind.ts";
import { driveReconciler } from "./reconcile.ts";
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
  handlers: driveTokenHandlers,
};
