/** Enforces location and flavor policies, both when a workload is written and when it runs. */
import { PlatformError } from "../../contract/errors.ts";
import type { Place } from "../../contract/placement.ts";
import { namesPolicies, storedPlacementRefusal } from "../../store/resources/placement-policies.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { type Input, type Platform, type PrepareContext, type Settings, workspaceOf } from "../port.ts";
import { requireIsolation } from "../workload/isolation.ts";

export const standingOf = ({ region, regionAliases, country, continent, flavors }: Settings): Place => ({
  regions: [region, ...regionAliases],
  country,
  continent,
  flavors,
});

/** Refuses to write a workload that its policies do not allow here. A disabled workload is not checked. */
export async function requirePlacement(kind: string, { spec }: Input, context: PrepareContext): Promise<void> {
  if (spec.enabled === false) return;
  const owner = { kind, workspace: workspaceOf(context.call).name, spec };
  await requirePlaced(owner, context.deps);
  await requireIsolation(owner, context.deps.store, context.deps.here.driver);
}

/** Applies the same check to a stored workload that is asked to run something. */
export async function requirePlaced(
  workload: Pick<Resource, "kind" | "workspace" | "spec">,
  { store, settings }: Pick<Platform, "store" | "settings">,
): Promise<void> {
  if (!namesPolicies(workload)) return;
  const refusal = await storedPlacementRefusal(store, workload, standingOf(settings));
  if (refusal === null) return;
  const message = `spec.policies: this ${workload.kind} must not run here: ${refusal}.`;
  // Clients of sandboxes read a code word from the body where others read the HTTP status.
  throw new PlatformError(
    "forbidden",
    message,
    workload.kind === "sandbox" ? { body: { code: "POLICY_VIOLATION" } } : {},
  );
}
