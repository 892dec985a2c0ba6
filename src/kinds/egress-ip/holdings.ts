/** What each server found out about an egress IP: the part of its state that says where traffic really leaves from it. */
import type { Resource } from "../../store/resources/resource.ts";

export interface Holding {
  /** `held`: traffic leaves from the address. `failed`: a probe saw another address. */
  outcome: "held" | "waiting" | "failed";
  /** How that is known, or the reason why nothing leaves from the address. */
  message: string;
  /** When a probe saw the address, in milliseconds; absent = no probe did. */
  probedAt?: number;
}

/** By node. */
export type Holdings = Readonly<Record<string, Holding>>;

export const holdingsOf = ({ state }: { state: { holdings?: Holdings } }): Holdings => state.holdings ?? {};

/** Whether workloads of this node leave from the address of the egress IP. */
export const leavesFrom = (ip: Resource, node: string): boolean =>
  ip.deletedAt === null && !ip.retired && holdingsOf(ip)[node]?.outcome === "held";

/** Whether traffic leaves from the address on any server. */
export const isDeployed = (ip: Resource): boolean =>
  ip.deletedAt === null && !ip.retired && Object.values(holdingsOf(ip)).some(({ outcome }) => outcome === "held");
