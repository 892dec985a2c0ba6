/**
 * The operator's proxies in front of the server, and where a client is whose request they passed on. Each proxy adds the
 * address that it sees to `X-Forwarded-For`; what stands before the entry of the outermost proxy can be forged.
 */
import { parseAddress } from "./address-class.ts";
import { type NetworkRange, parseRange, rangeHolds } from "./egress/network-range.ts";

export interface Proxies {
  /** Whether the connection with this other end comes from a proxy, whose `X-Forwarded-*` are believed. */
  include(peer: string): boolean;
  /** The entry of `X-Forwarded-For` that the outermost proxy added. */
  outermost(hops: readonly string[]): string | undefined;
}

export const NO_PROXIES: Proxies = { include: () => false, outermost: () => undefined };

/** Proxies in a row, at addresses that nobody else connects from. */
export const numberOfProxies = (count: number): Proxies =>
  count === 0 ? NO_PROXIES : { include: () => true, outermost: (hops) => hops[Math.max(0, hops.length - count)] };

/** Proxies at addresses of these ranges. Throws RuleProblem for a text that is no range. */
export function proxiesAt(ranges: readonly string[]): Proxies {
  const parsed = ranges.map((text, index): NetworkRange => parseRange(text, `[${index}]`));
  const include = (text: string): boolean => {
    const address = parseAddress(text);
    return address !== null && parsed.some((range) => rangeHolds(range, address));
  };
  return { include, outermost: (hops) => hops.findLast((hop) => !include(plainAddress(hop) ?? "")) ?? hops[0] };
}

/** The address of a client inside a workload, which has none; its `X-Forwarded-For` is not believed. */
export const FROM_WORKLOAD = "workload";

/** `workload` is the uid of the workload that the client is in, where that is known: tries are counted for each. */
export function clientAddress(
  peer: string | undefined,
  forwarded: string | string[] | undefined,
  proxies: Proxies,
  workload?: string,
): string {
  if (!peer) return workload === undefined ? FROM_WORKLOAD : `${FROM_WORKLOAD} ${workload}`;
  if (forwarded === undefined || !proxies.include(peer)) return peer;
  const hops = String(forwarded).split(",");
  return plainAddress(proxies.outermost(hops) ?? "") ?? peer;
}

/** Some proxies add the client's port, with which every connection would look like another client. */
function plainAddress(entry: string): string | null {
  const hop = entry.trim();
  const bare = /^\[(.+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
  return parseAddress(bare) ? bare : null;
}
