/** The workloads that belong to a VPC, and what their VPC lets them reach. */
import { isOffered, type OperatorNetwork, parseRoute } from "../../lib/network/egress/operator-networks.ts";
import type { VpcRoute, WorkloadVpc } from "../../lib/network/egress/workload-vpc.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Store } from "../../store/store.ts";
import { vpc as vpcKind } from "./kind.ts";

/** Kinds that have `spec.vpc`. */
export const MEMBER_KINDS: readonly string[] = ["sandbox", "agent", "function", "application", "job"];

/** The name of the VPC that a workload belongs to. */
export const vpcNameOf = ({ vpc }: Record<string, unknown>): string => String(vpc ?? vpcKind.builtIn);

/** Stands for the uid of a VPC that has no record yet, such as the built-in one of a new workspace. */
export const placeOf = ({ workspace, name }: Pick<Resource, "workspace" | "name">): string => `${workspace}/${name}`;

/** Null for what belongs to no VPC, such as a build. */
export async function vpcOf(
  { workspace, kind, spec }: Pick<Resource, "workspace" | "kind" | "spec">,
  networks: readonly OperatorNetwork[],
  { resources }: Pick<Store, "resources">,
): Promise<WorkloadVpc | null> {
  if (!MEMBER_KINDS.includes(kind)) return null;
  const name = vpcNameOf(spec);
  const found = await resources.get({ workspace, kind: vpcKind.name, parent: "" }, name);
  const isThere = found !== null && !found.retired && found.deletedAt === null;
  return {
    id: isThere ? found.uid : placeOf({ workspace, name }),
    name,
    internal: isThere && found.spec.internal === true,
    ...(isThere ? routesOf(found, networks) : { routes: [] }),
  };
}

/** Only what the operator still offers: settings may have changed since the routes were written. */
function routesOf({ workspace, spec }: Resource, networks: readonly OperatorNetwork[]) {
  const named = (Array.isArray(spec.routes) ? spec.routes : []).flatMap((cidr) => routeOrNone(String(cidr)));
  const isOpen = (route: VpcRoute): boolean => isOffered(networks, workspace, route);
  return { routes: named.filter(isOpen), withdrawn: named.filter((route) => !isOpen(route)) };
}

/** Older versions of the server stored members that they did not know without a look at them. */
function routeOrNone(cidr: string): VpcRoute[] {
  try {
    return [parseRoute(cidr, "spec.routes")];
  } catch {
    return [];
  }
}
