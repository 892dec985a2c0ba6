/** DNS lookups. A name without a record is a valid answer; a DNS server that does not respond is an error. */
import { Resolver } from "node:dns/promises";
import { SECOND_MS } from "../../lib/time/clock.ts";

/** Timeout of one DNS query. Two tries fit into one interactive request. */
const QUERY_MS = 2 * SECOND_MS;
const TRIES = 2;

export interface Dns {
  txt(name: string): Promise<string[]>;
  cname(name: string): Promise<string[]>;
  addresses(name: string): Promise<string[]>;
}

export class DnsUnreachable extends Error {}

export function createDns(servers: readonly string[]): Dns {
  const resolver = new Resolver({ timeout: QUERY_MS, tries: TRIES });
  if (servers.length > 0) resolver.setServers(servers);
  return {
    txt: async (name) => (await orNone(resolver.resolveTxt(name))).map((chunks) => chunks.join("")),
    cname: (name) => orNone(resolver.resolveCname(name)),
    addresses: async (name) =>
      (await Promise.all([orNone(resolver.resolve4(name)), orNone(resolver.resolve6(name))])).flat(),
  };
}

const NO_RECORD = new Set(["ENODATA", "ENOTFOUND", "EBADNAME"]);

async function orNone<T>(records: Promise<T[]>): Promise<T[]> {
  try {
    return await records;
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (NO_RECORD.has(code)) return [];
    throw new DnsUnreachable(`DNS did not answer (${code || "unknown error"})`, { cause: error });
  }
}
