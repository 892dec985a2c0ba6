/** Which addresses a workload may reach through the platform: those that anybody on the internet could reach too. */
import { BlockList, isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";

const FORBIDDEN: [network: string, prefix: number, why: string][] = [
  ["0.0.0.0", 8, "this host"],
  ["10.0.0.0", 8, "private"],
  ["100.64.0.0", 10, "shared by carriers"],
  ["127.0.0.0", 8, "loopback"],
  ["169.254.0.0", 16, "link-local, where clouds keep machine credentials"],
  ["172.16.0.0", 12, "private"],
  ["192.0.0.0", 24, "protocol assignments"],
  ["192.168.0.0", 16, "private"],
  ["198.18.0.0", 15, "benchmarks"],
  ["224.0.0.0", 4, "multicast"],
  ["240.0.0.0", 4, "reserved, broadcast"],
  ["::", 128, "unspecified"],
  ["::1", 128, "loopback"],
  ["64:ff9b::", 96, "translated to IPv4, which may be private"],
  ["64:ff9b:1::", 48, "translated to IPv4, which may be private"],
  ["100::", 64, "discarded"],
  ["2001::", 32, "tunnelled IPv4"],
  ["2002::", 16, "tunnelled IPv4"],
  ["fc00::", 7, "private"],
  ["fe80::", 10, "link-local"],
  ["fec0::", 10, "site-local"],
  ["ff00::", 8, "multicast"],
];

const forbidden = new BlockList();
for (const [network, prefix] of FORBIDDEN) forbidden.addSubnet(network, prefix, isIPv4(network) ? "ipv4" : "ipv6");

/** A mapped IPv4 address counts as the IPv4 address it is. */
export function isPublicAddress(address: string): boolean {
  const [plain = ""] = address.toLowerCase().split("%");
  const mapped = /^::(?:ffff:)?(\d+\.\d+\.\d+\.\d+)$/.exec(plain)?.[1];
  const judged = mapped ?? plain;
  return !forbidden.check(judged, isIPv4(judged) ? "ipv4" : "ipv6");
}

/** The machine's own addresses: public or not, behind them are its own services, perhaps without a firewall. */
export function isOwnAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((each) => each?.some((known) => known.address === address));
}
