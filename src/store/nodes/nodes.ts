/** The servers on one database. Times are the database's own, so that clocks of servers need not agree. */
import { type RawBuilder, sql } from "kysely";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database } from "../database/database.ts";
import type { NodeRow } from "../database/schema.ts";

/** Topic of changes to nodes; the key is the node's id. */
export const NODE_TOPIC = "node";

export interface NodeFacts {
  name: string;
  address: string | null;
  version: string;
  driver: string;
  capabilities: readonly string[];
  memoryMb: number;
  cpus: number;
  usedMb: number;
}

export interface NodeRecord extends NodeFacts {
  id: string;
  drained: boolean;
  /** Heard of within the time that was asked for. */
  live: boolean;
  startedAt: number;
  heartbeatAt: number;
}

export interface NodeSession {
  id: string;
  /** The process that speaks for the node. */
  session: string;
  /** Names the data folder that the process uses. */
  folder: string;
}

export type NodeStore = ReturnType<typeof createNodes>;

export function createNodes({ database, clock }: { database: Database; clock: Clock }) {
  const now = (): RawBuilder<number> =>
    database.dialect === "postgres"
      ? sql<number>`CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)`
      : sql<number>`CAST(${clock.now()} AS INTEGER)`;
  const changeOf = (key: string) => ({ topic: NODE_TOPIC, key });

  return {
    /**
     * Makes `session` the process that speaks for the node. False while a process with another data folder does, which
     * was heard of within `heardMs`: then one folder is a copy of the other. `heardMs` null: there can be no other.
     */
    register: (given: NodeSession, facts: NodeFacts, heardMs: number | null): Promise<boolean> =>
      database.write(async (tx) => {
        const time = now();
        const written = await tx.queries
          .insertInto("nodes")
          .values({ ...given, ...rowOf(facts), drained: 0, started_at: time, heartbeat_at: time })
          .onConflict((conflict) =>
            conflict
              .column("id")
              .doUpdateSet({ ...given, ...rowOf(facts), started_at: time, heartbeat_at: time })
              .where((eb) =>
                heardMs === null
                  ? eb.val(true)
                  : eb.or([
                      eb("nodes.folder", "=", given.folder),
                      sql<boolean>`nodes.heartbeat_at <= ${time} - ${heardMs}`,
                    ]),
              ),
          )
          .returning("id")
          .executeTakeFirst();
        if (written) tx.announce(changeOf(given.id));
        return written !== undefined;
      }),

    /** False when another process speaks for the node now, or when the node was removed. */
    beat: ({ id, session }: NodeSession, facts: NodeFacts): Promise<boolean> =>
      database.write(async ({ queries }) => {
        const { numUpdatedRows } = await queries
          .updateTable("nodes")
          .set({ ...rowOf(facts), heartbeat_at: now() })
          .where("id", "=", id)
          .where("session", "=", session)
          .executeTakeFirst();
        return numUpdatedRows > 0n;
      }),

    async list(lostAfterMs: number): Promise<NodeRecord[]> {
      const rows = await database.read
        .selectFrom("nodes")
        .selectAll()
        .select(sql<number>`CASE WHEN heartbeat_at > ${now()} - ${lostAfterMs} THEN 1 ELSE 0 END`.as("live"))
        .orderBy("name")
        .orderBy("id")
        .execute();
      return rows.map(recordOf);
    },

    setDrained: (id: string, drained: boolean): Promise<boolean> =>
      database.write(async (tx) => {
        const { numUpdatedRows } = await tx.queries
          .updateTable("nodes")
          .set({ drained: drained ? 1 : 0 })
          .where("id", "=", id)
          .executeTakeFirst();
        if (numUpdatedRows > 0n) tx.announce(changeOf(id));
        return numUpdatedRows > 0n;
      }),

    /** Removes a node that was not heard of for `lostAfterMs`; false when it was, or is unknown. */
    remove: (id: string, lostAfterMs: number): Promise<boolean> =>
      database.write(async (tx) => {
        const { numDeletedRows } = await tx.queries
          .deleteFrom("nodes")
          .where("id", "=", id)
          .where(sql<boolean>`heartbeat_at <= ${now()} - ${lostAfterMs}`)
          .executeTakeFirst();
        if (numDeletedRows > 0n) tx.announce(changeOf(id));
        return numDeletedRows > 0n;
      }),

    /** Removes every other node: for a database that only this server uses. */
    removeOthers: (id: string): Promise<void> =>
      database.write(async ({ queries }) => {
        await queries.deleteFrom("nodes").where("id", "<>", id).execute();
      }),

    onChange: (listener: () => void): (() => void) =>
      database.onChange(({ topic }) => {
        if (topic === NODE_TOPIC || topic === "resync") listener();
      }),
  };
}

const rowOf = (facts: NodeFacts) => ({
  name: facts.name,
  address: facts.address,
  version: facts.version,
  driver: facts.driver,
  capabilities: JSON.stringify(facts.capabilities),
  memory_mb: facts.memoryMb,
  cpus: facts.cpus,
  used_mb: facts.usedMb,
});

const recordOf = (row: NodeRow & { live: number }): NodeRecord => ({
  id: row.id,
  name: row.name,
  address: row.address,
  version: row.version,
  driver: row.driver,
  capabilities: JSON.parse(row.capabilities) as string[],
  memoryMb: row.memory_mb,
  cpus: row.cpus,
  usedMb: row.used_mb,
  drained: row.drained === 1,
  live: row.live === 1,
  startedAt: row.started_at,
  heartbeatAt: row.heartbeat_at,
});
