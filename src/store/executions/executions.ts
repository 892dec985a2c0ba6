/** Executions of batch jobs: creating, reading and forgetting them. queue.ts runs their tasks. */
import { sql } from "kysely";
import type { CursorCodec } from "../../contract/cursor.ts";
import { uuidv7 } from "../../lib/ids.ts";
import type { SealedBox } from "../../lib/sealed-box.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database } from "../database/database.ts";
import { requireLiveWorkspace } from "../resources/rows.ts";
import { CHUNK_TASKS, EXECUTION_TOPIC, type ExecutionRow, type TaskRow } from "./execution.ts";

export interface ExecutionDraft {
  workspace: string;
  jobUid: string;
  job: string;
  tasks: readonly Record<string, unknown>[];
  parallelism: number;
  maxRetries: number;
  timeoutS: number;
  memoryMb: number;
  memoryOverride: number | null;
  env: Record<string, string>;
  revision: string;
  slot: string | null;
  cause: string;
  createdBy: string;
}

export interface ExecutionsDeps {
  database: Database;
  clock: Clock;
  box: SealedBox;
  cursors: CursorCodec;
}

export type Executions = ReturnType<typeof createExecutions>;

export function createExecutions({ database, clock, box, cursors }: ExecutionsDeps) {
  return {
    async create(draft: ExecutionDraft): Promise<ExecutionRow> {
      const now = clock.now();
      const row: ExecutionRow = {
        id: uuidv7(now),
        workspace: draft.workspace,
        job_uid: draft.jobUid,
        job: draft.job,
        status: "queued",
        total: draft.tasks.length,
        next_index: 0,
        running: 0,
        retrying: 0,
        success: 0,
        failure: 0,
        cancelled: 0,
        retried: 0,
        timed_out: 0,
        parallelism: draft.parallelism,
        max_retries: draft.maxRetries,
        timeout_s: draft.timeoutS,
        memory_mb: draft.memoryMb,
        memory_override: draft.memoryOverride,
        env_override: null,
        revision: draft.revision,
        slot: draft.slot,
        cause: draft.cause,
        created_by: draft.createdBy,
        created_at: now,
        updated_at: now,
        started_at: null,
        completed_at: null,
        expires_at: null,
      };
      if (Object.keys(draft.env).length > 0) row.env_override = box.seal(JSON.stringify(draft.env), row.id);
      return database.write(async (tx) => {
        await requireLiveWorkspace(tx.queries, database.dialect, draft.workspace);
        const inserted = await tx.queries
          .insertInto("executions")
          .values(row)
          .onConflict((conflict) => conflict.doNothing())
          .executeTakeFirst();
        if (Number(inserted.numInsertedOrUpdatedRows ?? 0) === 0 && row.slot !== null) {
          return tx.queries.selectFrom("executions").selectAll().where("slot", "=", row.slot).executeTakeFirstOrThrow();
        }
        for (let chunk = 0; chunk * CHUNK_TASKS < draft.tasks.length; chunk += 1) {
          const tasks = JSON.stringify(draft.tasks.slice(chunk * CHUNK_TASKS, (chunk + 1) * CHUNK_TASKS));
          await tx.queries.insertInto("execution_chunks").values({ execution_id: row.id, chunk, tasks }).execute();
        }
        tx.announce({ topic: EXECUTION_TOPIC, key: row.id });
        return row;
      });
    },

    async get(workspace: string, id: string): Promise<ExecutionRow | null> {
      return (
        (await database.read
          .selectFrom("executions")
          .selectAll()
          .where("id", "=", id)
          .where("workspace", "=", workspace)
          .executeTakeFirst()) ?? null
      );
    },

    async getAcrossWorkspaces(id: string): Promise<ExecutionRow | null> {
      return (await database.read.selectFrom("executions").selectAll().where("id", "=", id).executeTakeFirst()) ?? null;
    },

    /** One page, newest first, or oldest first when ascending. */
    async list(
      workspace: string,
      jobUid: string,
      { limit, cursor, ascending, q }: { limit: number; cursor: string | null; ascending: boolean; q: string | null },
    ) {
      const bound = { list: "executions", workspace, jobUid, ascending, ...(q === null ? {} : { q }) };
      const [after] = cursor ? cursors.decode(cursor, bound, clock.now()) : [];
      let rows = database.read
        .selectFrom("executions")
        .selectAll()
        .where("workspace", "=", workspace)
        .where("job_uid", "=", jobUid)
        .orderBy("id", ascending ? "asc" : "desc")
        .limit(limit + 1);
      if (typeof after === "string") rows = rows.where("id", ascending ? ">" : "<", after);
      // A substring test that both databases understand and that has no LIKE wildcards.
      const names = sql<string>`lower(id || ' ' || coalesce(slot, ''))`;
      if (q !== null) rows = rows.where(sql<string>`replace(${names}, ${q}, '')`, "<>", names);
      const found = await rows.execute();
      const items = found.slice(0, limit);
      const last = items.at(-1);
      const hasMore = found.length > limit && last !== undefined;
      return { items, hasMore, nextCursor: hasMore ? cursors.encode([last.id], bound, clock.now()) : "" };
    },

    async countOf(workspace: string, jobUid: string): Promise<number> {
      const row = await database.read
        .selectFrom("executions")
        .select((eb) => eb.fn.countAll<number>().as("n"))
        .where("workspace", "=", workspace)
        .where("job_uid", "=", jobUid)
        .executeTakeFirst();
      return Number(row?.n ?? 0);
    },

    envOf: (row: ExecutionRow): Record<string, string> =>
      row.env_override === null ? {} : (JSON.parse(box.open(row.env_override, row.id)) as Record<string, string>),

    /** The arguments of tasks from `start` on, at most `count` of them. */
    async argumentsOf(id: string, start: number, count: number): Promise<Record<string, unknown>[]> {
      const [first, last] = [Math.floor(start / CHUNK_TASKS), Math.floor((start + count - 1) / CHUNK_TASKS)];
      const chunks = await database.read
        .selectFrom("execution_chunks")
        .select("tasks")
        .where("execution_id", "=", id)
        .where("chunk", ">=", first)
        .where("chunk", "<=", last)
        .orderBy("chunk")
        .execute();
      const tasks = chunks.flatMap((chunk) => JSON.parse(chunk.tasks) as Record<string, unknown>[]);
      return tasks.slice(start - first * CHUNK_TASKS, start - first * CHUNK_TASKS + count);
    },

    /** Rows of the started tasks with an index in [start, start + count). */
    async tasksOf(id: string, start: number, count: number): Promise<TaskRow[]> {
      return database.read
        .selectFrom("tasks")
        .selectAll()
        .where("execution_id", "=", id)
        .where("idx", ">=", start)
        .where("idx", "<", start + count)
        .orderBy("idx")
        .execute();
    },

    /** Rows of the started tasks among these indexes. */
    async tasksAt(id: string, places: readonly number[]): Promise<TaskRow[]> {
      if (places.length === 0) return [];
      return database.read
        .selectFrom("tasks")
        .selectAll()
        .where("execution_id", "=", id)
        .where("idx", "in", places)
        .execute();
    },

    /** Removes expired executions, at most `limit` per call. */
    async forgetExpired(limit: number): Promise<number> {
      return database.write(async ({ queries }) => {
        const old = await queries
          .selectFrom("executions")
          .select("id")
          .where("expires_at", "<", clock.now())
          .limit(limit)
          .execute();
        const ids = old.map((row) => row.id);
        if (ids.length === 0) return 0;
        await queries.deleteFrom("tasks").where("execution_id", "in", ids).execute();
        await queries.deleteFrom("execution_chunks").where("execution_id", "in", ids).execute();
        await queries.deleteFrom("executions").where("id", "in", ids).execute();
        return ids.length;
      });
    },

    onChange: (listener: (id: string) => void): (() => void) =>
      database.onChange(({ topic, key }) => {
        if (topic === EXECUTION_TOPIC || topic === "resync") listener(key);
      }),
  };
}
