/**
 * Whether an IP address is one of the wide network, of this machine's surroundings, or one that nobody should be sent
 * to on behalf of a tenant. Whoever dials for somebody else checks the address that was resolved, not the name.
 */
import { BlockList, isIP } from "node:net";

export type AddressClass = "public" | "private" | "forbidden";

const PRIVATE: [string, number, "ipv4" | "ipv6"][] = [
  ["10.0.0.0", 8, "ipv4"],
  ["100.64.0.0", 10, "ipv4"],
  ["127.0.0.0", 8, "ipv4"],
  ["172.16.0.0", 12, "ipv4"],
  ["192.168.0.0", 16, "ipv4"],
  ["::1", 128, "ipv6"],
  ["fc00::", 7, "ipv6"],
];

/** Link-local (where clouds serve machine credentials), multicast, reserved and unspecified addresses. */
const FORBIDDEN: [string, number, "ipv4" | "ipv6"][] = [
  ["0.0.0.0", 8, "ipv4"],
  ["169.254.0.0", 16, "ipv4"],
  ["192.0.0.0", 24, "ipv4"],
  ["198.18.0.0", 15, "ipv4"],
  ["224.0.0.0", 3, "ipv4"],
  ["::", 128, "ipv6"],
  ["fe80::", 10, "ipv6"],
  ["fec0::", 10, "ipv6"],
  ["ff00::", 8, "ipv6"],
  ["fd00:ec2::254", 128, "ipv6"],
];

const listOf = (ranges: typeof PRIVATE): BlockList => {
  const list = new BlockList();
  for (const [net, prefix, family] of ranges) list.addSubnet(net, prefix, family);
  return list;
};

const forbidden = listOf(FORBIDDEN);
const privates = listOf(PRIVATE);

/** What is not an IP address at all is forbidden. */
export function classifyAddress(address: string): AddressClass {
  const plain = embeddedIpv4(address) ?? address;
  const family = isIP(plain);
  if (family === 0) return "forbidden";
  const type = family === 4 ? "ipv4" : "ipv6";
  if (forbidden.check(plain, type)) return "forbidden";
  return privates.check(plain, type) ? "private" : "public";
}

/** ::ffff:127.0.0.1 and 64:ff9b::7f00:1 reach 127.0.0.1 by another spelling. */
function embeddedIpv4(address: string): string | null {
  const match = /^(?:::ffff:|64:ff9b::)(?:(\d+\.\d+\.\d+\.\d+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i.exec(address);
  if (!match) return null;
  if (match[1]) return match[1];
  const high = Number.parseInt(match[2] ?? "0", 16);
  const low = Number.parseInt(match[3] ?? "0", 16);
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}
