/**
 * The unit in which tries are counted by client address. An IPv6 client can choose any address of its /64, so the whole
 * /64 counts as one client; an IPv4 address counts by itself, in any spelling.
 */
import { parseAddress } from "./address-class.ts";

const IPV6_NETWORK_BYTES = 8;

/** Texts that are not addresses, such as the name of a workload's socket, are returned unchanged. */
export function clientNetwork(address: string): string {
  const bytes = parseAddress(address);
  if (!bytes) return address;
  return bytes.length === 4 ? bytes.join(".") : Buffer.from(bytes.subarray(0, IPV6_NETWORK_BYTES)).toString("hex");
}
