/**
 * What counts as one client where tries are counted by address. An IPv6 client has a whole /64 to choose addresses
 * from, so its network counts; an IPv4 address counts as it is, in whichever spelling it came.
 */
import { parseAddress } from "./address-class.ts";

const IPV6_NETWORK_BYTES = 8;

/** A text that is not an address, such as the word for a workload's door, is returned as it is. */
export function clientNetwork(address: string): string {
  const bytes = parseAddress(address);
  if (!bytes) return address;
  return bytes.length === 4 ? bytes.join(".") : Buffer.from(bytes.subarray(0, IPV6_NETWORK_BYTES)).toString("hex");
}
