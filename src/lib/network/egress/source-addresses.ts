/** The addresses that the connections of a workload leave from, when the workload has an egress gateway. */
import { isIPv6 } from "node:net";

/** `destination`: one destination always sees the same address. `turn`: each connection takes the next address. */
export const SOURCE_CHOICES = ["destination", "turn"] as const;

export type SourceChoice = (typeof SOURCE_CHOICES)[number];

export interface SourceAddresses {
  /** Name of the egress gateway, for messages. */
  gateway: string;
  ipv4: readonly string[];
  ipv6: readonly string[];
  choice: SourceChoice;
}

/** The source addresses of a connection in the order of trial. Empty: nothing leaves for this destination. */
export function sourcesTowards(sources: SourceAddresses, destination: string, turn: number): readonly string[] {
  const all = isIPv6(destination) ? sources.ipv6 : sources.ipv4;
  const first = (sources.choice === "turn" ? turn : hash(destination)) % Math.max(1, all.length);
  return [...all.slice(first), ...all.slice(0, first)];
}

export const leavesFrom = (sources: SourceAddresses, address: string): boolean =>
  sources.ipv4.includes(address) || sources.ipv6.includes(address);

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193) >>> 0;
  return value;
}
