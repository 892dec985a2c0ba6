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
  /** The table that was read last; it seldom changes. */
  last: { text: string; networks: OwnNetwork[] };
}

const LEAF = /\|-- (\d+\.\d+\.\d+\.\d+)\n((?:\s+\/\d+ .*\n)+)/g;
const LOCAL = /\/(\d+) host LOCAL/g;
const IPV6_LINE = /^([0-9a-f]{32}) /gm;

const TABLES: Record<4 | 16, Table> = {
  4: {
    path: "/proc/net/fib_trie",
    parse: (text) =>
      [...text.matchAll(LEAF)].flatMap(([, address = "", routes = ""]) =>
        [...routes.matchAll(LOCAL)].map(([, prefix]) => ({
          bytes: Uint8Array.from(address.split("."), Number),
          prefix: Number(prefix),
        })),
      ),
    last: { text: "", networks: [] },
  },
  16: {
    path: "/proc/net/if_inet6",
    parse: (text) =>
      [...text.matchAll(IPV6_LINE)].map(([, hex = ""]) => ({ bytes: Buffer.from(hex, "hex"), prefix: 128 })),
    last: { text: "", networks: [] },
  },
};

/** Null where the kernel has no such table, as on macOS. Interfaces come and go, so the table is read each time. */
export function ownNetworks(addressBytes: number): readonly OwnNetwork[] | null {
  const table = TABLES[addressBytes === 4 ? 4 : 16];
  let text: string;
  try {
    text = readFileSync(table.path, "latin1");
  } catch {
    return null;
  }
  if (text !== table.last.text) table.last = { text, networks: table.parse(text) };
  return table.last.networks;
}
