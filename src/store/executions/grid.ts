/** The tasks of an execution in few columns, all of them or those that changed. A task that never started has no row. */
import { sql } from "kysely";
import type { Database } from "../database/database.ts";
import type { TaskRow, TaskStatus } from "./execution.ts";

export type GridRow = Pick<TaskRow, "idx" | "status" | "started_at" | "completed_at">;

/** The tasks that have a row, in order of index. */
export interface GridColumns {
  index: number[];
  /** One letter for each. */
  letters: string;
  /** In milliseconds; null without. Empty when not asked for. */
  startedAt: (number | null)[];
  completedAt: (number | null)[];
}

export function createExecutionGrid({ database }: { database: Database }) {
  return {
    /** The database joins each column to one text: rows of 100,000 tasks would cost a second here. */
    async gridOf(
      executionId: string,
      letterOf: Readonly<Record<TaskStatus, string>>,
      withTimes: boolean,
    ): Promise<GridColumns> {
      const whens = Object.entries(letterOf).map(([status, letter]) => sql`WHEN ${status} THEN ${letter}`);
      const joined = (column: string) =>
        sql`string_agg(COALESCE(CAST(${sql.ref(column)} AS TEXT), 'null'), ',' ORDER BY idx)`;
      const times = withTimes
        ? sql`, ${joined("started_at")} AS started, ${joined("completed_at")} AS completed`
        : sql``;
      const query = sql<Joined>`SELECT COUNT(*) AS n, MAX(idx) AS last,
        string_agg(CASE status ${sql.join(whens, sql` `)} ELSE '?' END, '' ORDER BY idx) AS letters,
        CASE WHEN COUNT(*) = MAX(idx) + 1 THEN NULL ELSE string_agg(CAST(idx AS TEXT), ',' ORDER BY idx) END AS indexes
        ${times} FROM tasks WHERE execution_id = ${executionId}`;
      const [row] = await database.report<Joined>(query.compile(database.read));
      const count = Number(row?.n ?? 0);
      return {
        // Tasks start in order, so nearly always every index up to the last one is there.
        index: row?.indexes ? listOf(row.indexes).map(Number) : Array.from({ length: count }, (_, n) => n),
        letters: row?.letters ?? "",
        startedAt: listOf(row?.started),
        completedAt: listOf(row?.completed),
      };
    },

    /** Tasks that changed at this moment or later; null when there are more than `limit`. */
    async changedTasks(executionId: string, sinceMs: number, limit: number): Promise<GridRow[] | null> {
      const rows: GridRow[] = await database.read
        .selectFrom("tasks")
        .select(["idx", "status", "started_at", "completed_at"])
        .where("execution_id", "=", executionId)
        .where("updated_at", ">=", sinceMs)
        .limit(limit + 1)
        .execute();
      return rows.length > limit ? null : rows.sort((a, b) => a.idx - b.idx);
    },
  };
}

interface Joined {
  n: number;
  letters: string | null;
  indexes: string | null;
  started?: string | null;
  completed?: string | null;
}

const listOf = (joined: string | null | undefined): (number | null)[] =>
  joined ? (JSON.parse(`[${joined}]`) as (number | null)[]) : [];
