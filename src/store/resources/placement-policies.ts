/** Why the policies that a workload names do not let it run at a place; null when they do. */
import { type Place, type PlacementPolicy, placementRefusal } from "../../contract/placement.ts";
import type { Store } from "../store.ts";
import type { Resource } from "./resource.ts";

export async function storedPlacementRefusal(
  store: Pick<Store, "resources">,
  { kind, workspace, spec }: Pick<Resource, "kind" | "workspace" | "spec">,
  place: Place,
): Promise<string | null> {
  const names = [...new Set((spec.policies ?? []) as readonly string[])];
  const scope = { workspace, kind: "policy", parent: "" };
  const found = await Promise.all(names.map((name) => store.resources.get(scope, name)));
  // A policy that does not exist is refused when the workload is written.
  const policies = found.flatMap((one) => (one ? [{ name: one.name, ...(one.spec as PolicySpec) }] : []));
  return placementRefusal(policies, kind, place);
}

type PolicySpec = Omit<PlacementPolicy, "name">;

export const namesPolicies = ({ spec }: Pick<Resource, "spec">): boolean =>
  Array.isArray(spec.policies) && spec.policies.length > 0;
