/**
 * The addresses of this machine as the kernel lists them, for one address family. Node's `networkInterfaces()` takes time
 * with the square of the number of interfaces (23 ms with 1,000), and a machine has an interface for each workload; these
 * tables hold addresses only, and are read in some ten microseconds.
 */
import { readFileSync } from "node:fs";

export interface OwnNetwork {
  bytes: Uint8Array;
  /** Less than all bits where a route makes a whole network the machine's own (`ip route add local`). */
  prefix: number;
}

interface Table {
  path: string;
  parse(text: string): OwnNetwork[];
  /** How long the table is not read again. */
  freshMs: number;
  /** The table that was read last; it seldom changes. */
  last: { text: string; networks: OwnNetwork[]; atMs: number };
}

const LEAF = /\|-- (\d+\.\d+\.\d+\.\d+)\n((?:\s+\/\d+ .*\n)+)/g;
const LOCAL = /\/(\d+) host LOCAL/g;
const IPV6_ADDRESS = /^([0-9a-f]{32}) /gm;
/** Destination, prefix and, before the name of the device, flags of which the first bit (RTF_LOCAL) says local. */
const IPV6_LOCAL_ROUTE = /^([0-9a-f]{32}) ([0-9a-f]{2}) .* [89a-f][0-9a-f]{7} +\S+$/gm;

/** The routes of IPv6 are several for each interface, and those that make a network local are the operator's. */
const ROUTES_FRESH_MS = 1000;

const NEVER = { text: "", networks: [], atMs: Number.NEGATIVE_INFINITY };

const IPV4_ROUTES: Table = {
  path: "/proc/net/fib_trie",
  parse: (text) =>
    [...text.matchAll(LEAF)].flatMap(([, address = "", routes = ""]) =>
      [...routes.matchAll(LOCAL)].map(([, prefix]) => ({
        bytes: Uint8Array.from(address.split("."), Number),
        prefix: Number(prefix),
      })),
    ),
  freshMs: 0,
  last: NEVER,
};

const IPV6_ADDRESSES: Table = {
  path: "/proc/net/if_inet6",
  parse: (text) =>
    [...text.matchAll(IPV6_ADDRESS)].map(([, hex = ""]) => ({ bytes: Buffer.from(hex, "hex"), prefix: 128 })),
  freshMs: 0,
  last: NEVER,
};

const IPV6_ROUTES: Table = {
  path: "/proc/net/ipv6_route",
  parse: (text) =>
    [...text.matchAll(IPV6_LOCAL_ROUTE)].map(([, hex = "", prefix = ""]) => ({
      bytes: Buffer.from(hex, "hex"),
      prefix: Number.parseInt(prefix, 16),
    })),
  freshMs: ROUTES_FRESH_MS,
  last: NEVER,
};

/** Null where the kernel has no such table, as on macOS. Interfaces come and go, so addresses are read each time. */
export function ownNetworks(addressBytes: number): readonly OwnNetwork[] | null {
  if (addressBytes === 4) return networksOf(IPV4_ROUTES);
  const addresses = networksOf(IPV6_ADDRESSES);
  return addresses && [...addresses, ...(networksOf(IPV6_ROUTES) ?? [])];
}

function networksOf(table: Table): readonly OwnNetwork[] | null {
  const nowMs = performance.now();
  if (nowMs - table.last.atMs < table.freshMs) return table.last.networks;
  let text: string;
  try {
    text = readFileSync(table.path, "latin1");
  } catch {
    return null;
  }
  const networks = text === table.last.text ? table.last.networks : table.parse(text);
  table.last = { text, networks, atMs: nowMs };
  return networks;
}
