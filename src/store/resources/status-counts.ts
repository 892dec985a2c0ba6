/** How many resources of a workspace have which status: a counter that the transaction of every change moves. */
import { type Database, type Dialect, fixedQuery, type SharedWork, type Transaction } from "../database/database.ts";
import type { ResourceRow } from "../database/schema.ts";

/**
 * Rows of one counter on PostgreSQL, where a writer locks a row until its commit. SQLite has one writer and needs one.
 */
const SHARDS = 8;
/** Key of resources that have no status. */
export const NO_STATUS = "";

const MOVE = fixedQuery(
  `INSERT INTO status_counts (workspace, kind, status, shard, n) VALUES (?, ?, ?, ?, ?)
   ON CONFLICT (workspace, kind, status, shard) DO UPDATE SET n = status_counts.n + excluded.n`,
);

type Counted = Pick<ResourceRow, "uid" | "workspace" | "kind" | "status" | "slot">;

interface Step {
  row: Counted;
  by: 1 | -1;
}

export type StatusCounter = ReturnType<typeof createStatusCounter>;

export function createStatusCounter(dialect: Dialect) {
  const move: SharedWork<Step> = async (queries, steps) => {
    const sums = new Map<string, { row: Counted; by: number }>();
    for (const { row, by } of steps) {
      const key = [row.workspace, row.kind, row.status, shardOf(row, dialect)].join("\0");
      const sum = sums.get(key);
      if (sum) sum.by += by;
      else sums.set(key, { row, by });
    }
    // The order of the keys is fixed so that writers do not deadlock.
    for (const [, { row, by }] of [...sums].sort(([a], [b]) => (a < b ? -1 : 1)))
      if (by !== 0)
        await MOVE.run(queries, dialect, [row.workspace, row.kind, row.status ?? NO_STATUS, shardOf(row, dialect), by]);
  };
  const isCounted = ({ slot }: Counted): boolean => !slot.startsWith("~");

  return {
    /** Records that a row came (`before` null), changed, or went (`after` null). Retired rows do not count. */
    record(tx: Transaction, before: Counted | null, after: Counted | null): void {
      const from = before && isCounted(before) ? before : null;
      const to = after && isCounted(after) ? after : null;
      if (from && to && from.status === to.status) return;
      if (from) tx.share(move, { row: from, by: -1 });
      if (to) tx.share(move, { row: to, by: 1 });
    },
  };
}

/** The last digit of a uid is random. */
const shardOf = ({ uid }: Pick<Counted, "uid">, dialect: Dialect): number =>
  dialect === "sqlite" ? 0 : Number.parseInt(uid.slice(-1), 16) % SHARDS;

/** By kind, then by status; `NO_STATUS` for resources without one. */
export async function statusCountsIn(
  { read }: Pick<Database, "read">,
  workspace: string,
): Promise<Map<string, Record<string, number>>> {
  const rows = await read
    .selectFrom("status_counts")
    .select(["kind", "status", (eb) => eb.fn.sum<number>("n").as("n")])
    .where("workspace", "=", workspace)
    .groupBy(["kind", "status"])
    .orderBy("kind")
    .orderBy("status")
    .execute();
  const counts = new Map<string, Record<string, number>>();
  for (const { kind, status, n } of rows)
    if (Number(n) !== 0) counts.set(kind, { ...counts.get(kind), [status]: Number(n) });
  return counts;
}
