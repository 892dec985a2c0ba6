/** The VPC of a workload: which names of other workloads it may use, and which networks of the operator it reaches. */
import { parseAddress } from "../address-class.ts";
import type { Host } from "./host.ts";
import { type NetworkRange, rangeHolds } from "./network-range.ts";

export interface WorkloadVpc {
  /** The same for every workload of the VPC, and for no other workload. */
  id: string;
  name: string;
  /** Workloads of the VPC reach each other. */
  internal: boolean;
  routes: readonly VpcRoute[];
  /** Routes that the VPC names and the operator offers no longer: closed, and told apart in refusals. */
  withdrawn?: readonly VpcRoute[];
}

export interface VpcRoute extends NetworkRange {
  /** For the packet filter: `10.20.0.0/16`. The prefix is the number that was judged; nft reads `/016` as octal. */
  cidr: string;
}

/** The last label of the names of workloads. ICANN reserved it for private use, so no public name ends with it. */
export const INTERNAL_ZONE = "internal";

/** A name below `<vpc>.internal`: the name of a workload, perhaps with its kind. */
export interface InternalName {
  name: string;
  /** Null: the name alone, `<name>.<vpc>.internal`. */
  kind: string | null;
}

/** Null when the host is not below `<vpc>.internal`. A host that is below, and names no workload, has an empty name. */
export function internalNameOf({ text, address }: Host, vpc: string): InternalName | null {
  const zone = `${vpc}.${INTERNAL_ZONE}`;
  if (address || (text !== zone && !text.endsWith(`.${zone}`))) return null;
  const [name = "", kind = null, ...more] = text.slice(0, -zone.length).split(".").slice(0, -1);
  return more.length === 0 ? { name, kind } : { name: "", kind: null };
}

/** Whether the VPC has a route to the address. `isRoutable` decides whether a route may lead there at all. */
export function hasRoute({ routes }: Pick<WorkloadVpc, "routes">, address: string): boolean {
  const bytes = parseAddress(address);
  return bytes !== null && routes.some((route) => rangeHolds(route, bytes));
}
