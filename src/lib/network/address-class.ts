/**
 * Classifies an IP address: public, private (this machine and its networks) or forbidden for tenants. All code that
 * dials on behalf of a tenant checks the resolved address here: the egress proxy, the packet filter of workloads,
 * connections, callbacks, model providers and identity providers. An address is classified by its bytes: a text has
 * many spellings (`::ffff:10.0.0.1`, `0::FFFF:a00:1`), the bytes have one.
 */
import { isIPv4, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { ownNetworks } from "./own-networks.ts";

/** `private` includes every address of this machine, because its services listen there without a firewall between. */
export type AddressClass = "public" | "private" | "forbidden";

/** A network in the notation `address/prefix`, its class, and why it has that class. */
type Range = readonly [network: string, kind: AddressClass, why: string];

const [LOOPBACK_IPV4, LOOPBACK_IPV6] = ["127.0.0.0/8", "::1/128"] as const;

/** The first range that holds an address decides. An IPv4 address that no range holds is public. */
const IPV4_RANGES: readonly Range[] = [
  ["100.100.100.200/32", "forbidden", "machine credentials of a cloud"],
  ["168.63.129.16/32", "forbidden", "the host agent of a cloud"],
  ["0.0.0.0/8", "forbidden", "this host"],
  ["10.0.0.0/8", "private", "private"],
  ["100.64.0.0/10", "private", "shared by carriers"],
  [LOOPBACK_IPV4, "private", "loopback"],
  ["169.254.0.0/16", "forbidden", "link-local, where clouds serve machine credentials"],
  ["172.16.0.0/12", "private", "private"],
  ["192.0.0.0/24", "forbidden", "protocol assignments"],
  ["192.88.99.0/24", "forbidden", "relays of 6to4"],
  ["192.168.0.0/16", "private", "private"],
  ["198.18.0.0/15", "forbidden", "benchmarks, and the network of workloads"],
  ["224.0.0.0/4", "forbidden", "multicast"],
  ["240.0.0.0/4", "forbidden", "reserved, broadcast"],
];

/** The first range that holds an address decides. An IPv6 address that no range holds is forbidden. */
const IPV6_RANGES: readonly Range[] = [
  [LOOPBACK_IPV6, "private", "loopback"],
  ["fd00:ec2::254/128", "forbidden", "machine credentials of a cloud"],
  ["fd20:ce::254/128", "forbidden", "machine credentials of a cloud"],
  ["fd62:6572:7468::/48", "forbidden", "the network of workloads"],
  ["fc00::/7", "private", "private"],
  ["2001::/23", "forbidden", "protocol assignments, among them Teredo, which carries IPv4"],
  ["2002::/16", "forbidden", "6to4, which carries IPv4"],
  ["2000::/3", "public", "everything that is assigned for use on the internet"],
];

/** Networks whose last four bytes are the IPv4 address that is actually reached. */
const IPV4_WITHIN_IPV6 = ["::ffff:0:0/96", "64:ff9b::/96"];

/** A text that is not an IP address is forbidden. A zone (`%eth0`) is ignored. */
export function classifyAddress(text: string): AddressClass {
  const bytes = parseAddress(text);
  if (!bytes) return "forbidden";
  const kind = classOf(bytes);
  return kind === "public" && isOwn(bytes) ? "private" : kind;
}

/**
 * Whether a route of a VPC may lead to an address: a public or private one, but neither loopback nor an address of this
 * machine.
 */
export function isRoutable(text: string): boolean {
  const bytes = parseAddress(text);
  return bytes !== null && classOf(bytes) !== "forbidden" && !NEVER.some((each) => holds(each, bytes)) && !isOwn(bytes);
}

/**
 * The same for packet filters, which know the machine's own addresses by themselves: an IPv6 address has to be in one of
 * `ipv6Within`, and no address may be in `ipv4Without` or `ipv6Without`.
 */
export const ROUTABLE: Record<"ipv4Without" | "ipv6Within" | "ipv6Without", readonly string[]> = {
  ipv4Without: [...networksOf(IPV4_RANGES, "forbidden"), LOOPBACK_IPV4],
  ipv6Within: [...networksOf(IPV6_RANGES, "private"), ...networksOf(IPV6_RANGES, "public")].filter(
    (network) => network !== LOOPBACK_IPV6,
  ),
  ipv6Without: networksOf(IPV6_RANGES, "forbidden"),
};

/** The IPv4 networks that are not public, without those contained in another one; for packet filters. */
export const NON_PUBLIC_IPV4: readonly string[] = IPV4_RANGES.filter(
  ([network], index) =>
    !IPV4_RANGES.some(([other], place) => place !== index && holds(parsed(other), parsed(network).bytes)),
).map(([network]) => network);

/** The IPv6 networks that are public: `within`, without those in `without`; for packet filters. */
export const PUBLIC_IPV6: { within: string; without: readonly string[] } = publicIpv6();

/** Four or sixteen bytes; an IPv4 address within an IPv6 one becomes its four bytes. Null for other texts. */
export function parseAddress(text: string): Uint8Array | null {
  const [plain = ""] = text.split("%", 1);
  if (isIPv4(plain)) return Uint8Array.from(plain.split("."), Number);
  if (!isIPv6(plain)) return null;
  const bytes = ipv6Bytes(plain);
  return WITHIN.some((network) => holds(network, bytes)) ? bytes.subarray(12) : bytes;
}

function networksOf(ranges: readonly Range[], kind: AddressClass): string[] {
  return ranges.filter((range) => range[1] === kind).map(([network]) => network);
}

function publicIpv6(): { within: string; without: readonly string[] } {
  const within = IPV6_RANGES.find(([, kind]) => kind === "public")?.[0] ?? "";
  const inside = IPV6_RANGES.filter(
    ([network, kind]) => kind !== "public" && holds(parsed(within), parsed(network).bytes),
  );
  return { within, without: inside.map(([network]) => network) };
}

function classOf(bytes: Uint8Array): AddressClass {
  const isV4 = bytes.length === 4;
  const found = (isV4 ? V4 : V6).find(({ network }) => holds(network, bytes));
  return found?.kind ?? (isV4 ? "public" : "forbidden");
}

function isOwn(bytes: Uint8Array): boolean {
  const networks = ownNetworks(bytes.length);
  if (networks) return networks.some((network) => holds(network, bytes));
  return Object.values(networkInterfaces()).some((each) =>
    each?.some(({ address }) => {
      const own = parseAddress(address);
      return own !== null && Buffer.compare(own, bytes) === 0;
    }),
  );
}

/** `text` must be a valid IPv6 address. */
function ipv6Bytes(text: string): Uint8Array {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
  const pair = (high: string | undefined, low: string | undefined): string =>
    (Number(high) * 256 + Number(low)).toString(16);
  const hex = dotted ? `${dotted[1]}${pair(dotted[2], dotted[3])}:${pair(dotted[4], dotted[5])}` : text;
  const [head = "", tail] = hex.split("::");
  const words = (part: string): number[] =>
    part
      .split(":")
      .filter(Boolean)
      .map((word) => Number.parseInt(word, 16));
  const [front, back] = [words(head), words(tail ?? "")];
  const all = [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back];
  return Uint8Array.from(all.flatMap((word) => [word >> 8, word & 255]));
}

interface Network {
  bytes: Uint8Array;
  prefix: number;
}

function parsed(notation: string): Network {
  const [address = "", prefix] = notation.split("/");
  const bytes = isIPv4(address) ? Uint8Array.from(address.split("."), Number) : ipv6Bytes(address);
  return { bytes, prefix: Number(prefix) };
}

function holds({ bytes, prefix }: Network, address: Uint8Array): boolean {
  if (bytes.length !== address.length) return false;
  return bytes.every((byte, index) => {
    const bits = Math.min(8, Math.max(0, prefix - index * 8));
    const mask = (0xff << (8 - bits)) & 0xff;
    return (byte & mask) === ((address[index] ?? 0) & mask);
  });
}

const WITHIN = IPV4_WITHIN_IPV6.map(parsed);
const NEVER = [LOOPBACK_IPV4, LOOPBACK_IPV6].map(parsed);
const V4 = IPV4_RANGES.map(([network, kind]) => ({ network: parsed(network), kind }));
const V6 = IPV6_RANGES.map(([network, kind]) => ({ network: parsed(network), kind }));
