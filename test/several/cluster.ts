/**
 * Several servers on one PostgreSQL, all of them real: a process, a data folder, a machine and a peer port each. Peers
 * meet through relays, which a test can cut.
 *
 *   await using cluster = await startCluster(["a", "b"]);
 *   const { a, b } = cluster.members;
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import pg from "pg";
import { closeAtEnd } from "../closing.ts";
import { freePort } from "../free-port.ts";
import { tracesOf } from "../local/machine.ts";
import { type PrivatePostgres, startPrivatePostgres } from "../postgres.ts";
import { type Member, makeMember } from "./member.ts";
import { type Cut, type Relay, startRelay } from "./relay.ts";
import { until } from "./use.ts";
import type { Running } from "./what-runs.ts";

export interface Cluster<Name extends string> extends AsyncDisposable {
  members: Record<Name, Member>;
  all: Member[];
  postgres: PrivatePostgres;
  /** Ends the connections of other servers to this one; new ones fail until `mend`. */
  cut(name: Name, how: Cut): void;
  mend(name: Name): void;
  /** Every server can act on every workload: none of them is one server's own. */
  isShared: boolean;
  /** Runs a statement on the database of the servers. */
  query<Row>(text: string): Promise<Row[]>;
  stop(): Promise<void>;
}

export interface ClusterOptions {
  /** Settings of each server beside those of every test. */
  env?: () => Promise<Record<string, string>>;
  /** The workloads of the server with that data folder; default: those of driver local. */
  running?: (dataDir: string) => Running[];
  /** Every server has the workloads of all. */
  isShared?: boolean;
}

export async function startCluster<Name extends string>(
  names: readonly Name[],
  { env = async () => ({}), running, isShared = false }: ClusterOptions = {},
): Promise<Cluster<Name>> {
  const postgres = await startPrivatePostgres();
  if ("reason" in postgres) throw new Error(postgres.reason);
  const closedPostgres = closeAtEnd(() => postgres.stop());
  const query = async <Row>(text: string): Promise<Row[]> => {
    const client = new pg.Client({ connectionString: postgres.url });
    await client.connect();
    try {
      return (await client.query(text)).rows as Row[];
    } finally {
      await client.end();
    }
  };
  const isAble = (id: string): Promise<unknown> =>
    until(
      () => query<{ capabilities: string }>(`SELECT capabilities FROM nodes WHERE id = '${id}'`),
      ([row]) => row !== undefined && row.capabilities !== "[]",
    );
  const members = new Map<Name, Member>();
  const relays = new Map<Name, Relay>();
  for (const name of names) {
    const port = await freePort();
    const relay = await startRelay(port);
    relays.set(name, relay);
    const peer = { BERTH_PEER_HOST: "127.0.0.1", BERTH_PEER_PORT: String(port), BERTH_PEER_ADDRESS: relay.address };
    members.set(
      name,
      makeMember({ name, databaseUrl: postgres.url, env: { ...peer, ...(await env()) }, isAble, running }),
    );
  }
  const all = [...members.values()];
  const relayOf = (name: Name): Relay => relays.get(name) ?? assert.fail(`no relay for ${name}`);
  const stop = async (): Promise<void> => {
    closed();
    const left: string[] = [];
    try {
      for (const member of all) left.push(...(await endedOn(member, running === undefined)));
    } finally {
      for (const relay of relays.values()) await relay.stop();
      closedPostgres();
      await postgres.stop();
    }
    assert.deepEqual(left, [], "what the servers left on the machine");
  };
  const closed = closeAtEnd(stop);
  await Promise.all(all.map((member) => member.start()));
  return {
    members: Object.fromEntries(members) as Record<Name, Member>,
    ...{ all, postgres, query, stop, isShared },
    cut: (name, how) => relayOf(name).cut(how),
    mend: (name) => relayOf(name).mend(),
    [Symbol.asyncDispose]: stop,
  };
}

/** Ends the server with its workloads; returns the traces of driver local that are left. */
async function endedOn(member: Member, isLocal: boolean): Promise<string[]> {
  await member.berth("down", "--purge", "--yes");
  const traces = isLocal ? tracesOf(join(member.dataDir, "runtime")) : [];
  await member.remove();
  return traces;
}
