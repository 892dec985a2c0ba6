/**
 * The client's address: the peer of the connection or, behind the operator's proxies, the entry that the outermost
 * proxy added to `X-Forwarded-For`. Entries before that one can be forged. A connection without an address comes from
 * inside a workload, whose `X-Forwarded-For` is not trusted.
 */
import { parseAddress } from "../lib/network/address-class.ts";

export const FROM_WORKLOAD = "workload";

export function clientAddress(
  peer: string | undefined,
  forwarded: string | string[] | undefined,
  proxies: number,
): string {
  if (!peer) return FROM_WORKLOAD;
  if (forwarded === undefined || proxies === 0) return peer;
  const hops = String(forwarded).split(",");
  return plainAddress(hops[Math.max(0, hops.length - proxies)]?.trim() ?? "") ?? peer;
}

/** Some proxies add the client's port, with which every connection would look like another client. */
function plainAddress(hop: string): string | null {
  const bare = /^\[(.+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
  return parseAddress(bare) ? bare : null;
}
