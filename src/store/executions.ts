/**
 * The queue of batch jobs. A task is claimed under a lease, and every report names the attempt it is about: a runner
 * that was paused past its lease finds its report refused. Counters on the execution change in the same transaction
 * as the task, so they always add up and reading them costs one row.
 */
import { type ExpressionBuilder, sql } from "kysely";
import type { CursorCodec } from "../contract/cursor.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Clock } from "../lib/clock.ts";
import { uuidv7 } from "../lib/ids.ts";
import type { SealedBox } from "../lib/sealed-box.ts";
import type { Database, Queries, Transaction } from "./database.ts";
import {
  CHUNK_TASKS,
  type ExecutionRow,
  finalStatus,
  isDone,
  type TaskClaim,
  type TaskOutcome,
  type TaskRow,
} from "./execution.ts";
import { requireLiveWorkspace } from "./resource-rows.ts";
import type { Tables } from "./schema.ts";

export const EXECUTION_TOPIC = "execution";

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
  /** Told once, in the transaction that ends it. */
  ended(tx: Transaction, row: ExecutionRow): Promise<void>;
}

export type Executions = ReturnType<typeof createExecutions>;

export function createExecutions({ database, clock, box, cursors, ended }: ExecutionsDeps) {
  const lock = (queries: Queries, id: string) => {
    const row = queries.selectFrom("executions").selectAll().where("id", "=", id);
    return (database.dialect === "postgres" ? row.forUpdate() : row).executeTakeFirst();
  };

  /** Writes changed counters, and the end when they say so. */
  async function settle(tx: Transaction, row: ExecutionRow, expiresAfterMs: number): Promise<void> {
    const now = clock.now();
    const done = isDone(row);
    const next = {
      ...row,
      updated_at: now,
      ...(done ? { status: finalStatus(row), completed_at: now, expires_at: now + expiresAfterMs } : {}),
    };
    const { id: _id, ...set } = next;
    await tx.queries.updateTable("executions").set(set).where("id", "=", row.id).execute();
    tx.announce({ topic: EXECUTION_TOPIC, key: row.id });
    if (done && row.completed_at === null) await ended(tx, next);
  }

  async function claimRetry(
    tx: Transaction,
    row: ExecutionRow,
    holder: string,
    leaseUntil: number,
  ): Promise<TaskClaim | null> {
    if (row.retrying === 0) return null;
    const waiting = tx.queries
      .selectFrom("tasks")
      .selectAll()
      .where("execution_id", "=", row.id)
      .where("status", "=", "retrying")
      .where("next_at", "<=", clock.now())
      .orderBy("idx")
      .limit(1);
    const task = await (database.dialect === "postgres" ? waiting.forUpdate() : waiting).executeTakeFirst();
    if (!task) return null;
    const workload = uuidv7(clock.now());
    const change = {
      status: "running" as const,
      attempt: task.attempt + 1,
      holder,
      lease_until: leaseUntil,
      workload,
      started_at: null,
      updated_at: clock.now(),
    };
    await tx.queries
      .updateTable("tasks")
      .set(change)
      .where("execution_id", "=", row.id)
      .where("idx", "=", task.idx)
      .execute();
    row.retrying -= 1;
    const { attempt } = change;
    return { executionId: row.id, index: task.idx, attempt, workload, leaseUntil, previousWorkload: task.workload };
  }

  async function claimFresh(
    tx: Transaction,
    row: ExecutionRow,
    holder: string,
    leaseUntil: number,
  ): Promise<TaskClaim | null> {
    if (row.next_index >= row.total) return null;
    const now = clock.now();
    const workload = uuidv7(now);
    const task: TaskRow = {
      execution_id: row.id,
      idx: row.next_index,
      status: "running",
      attempt: 1,
      failures: 0,
      holder,
      lease_until: leaseUntil,
      next_at: 0,
      workload,
      scheduled_at: now,
      started_at: null,
      completed_at: null,
      updated_at: now,
      exit_code: null,
      reason: null,
      message: null,
    };
    await tx.queries.insertInto("tasks").values(task).execute();
    row.next_index += 1;
    return { executionId: row.id, index: task.idx, attempt: 1, workload, leaseUntil, previousWorkload: null };
  }

  async function report(
    tx: Transaction,
    claim: Pick<TaskClaim, "executionId" | "index" | "attempt">,
    outcome: TaskOutcome,
    { retryAfterMs, keepMs }: { retryAfterMs(failures: number): number; keepMs: number },
  ): Promise<boolean> {
    const row = await lock(tx.queries, claim.executionId);
    if (!row) return false;
    const task = await tx.queries
      .selectFrom("tasks")
      .selectAll()
      .where("execution_id", "=", row.id)
      .where("idx", "=", claim.index)
      .executeTakeFirst();
    if (task?.status !== "running" || task.attempt !== claim.attempt) return false;
    const now = clock.now();
    const failures = task.failures + (outcome.result === "failed" ? 1 : 0);
    const again = outcome.result === "lost" || (outcome.result === "failed" && failures <= row.max_retries);
    const status =
      outcome.result === "succeeded"
        ? "succeeded"
        : !again
          ? "failed"
          : row.status === "cancelling"
            ? "cancelled"
            : "retrying";
    row.running -= 1;
    if (status === "succeeded") row.success += 1;
    if (status === "cancelled") row.cancelled += 1;
    if (status === "retrying") row.retrying += 1;
    if (status === "retrying" && outcome.result === "failed") row.retried += 1;
    if (status === "failed") {
      row.failure += 1;
      row.timed_out += outcome.result === "failed" && outcome.timedOut ? 1 : 0;
    }
    await tx.queries
      .updateTable("tasks")
      .set({
        status,
        failures,
        updated_at: now,
        lease_until: 0,
        next_at: status === "retrying" ? now + (outcome.result === "lost" ? 0 : retryAfterMs(failures)) : 0,
        completed_at: status === "retrying" ? null : now,
        ...(outcome.result === "succeeded" ? { exit_code: 0, reason: null, message: null } : {}),
        ...(outcome.result === "failed"
          ? { exit_code: outcome.exitCode, reason: outcome.reason, message: outcome.message }
          : {}),
        ...(outcome.result === "lost" ? { reason: "WorkerLost", message: outcome.message } : {}),
      })
      .where("execution_id", "=", row.id)
      .where("idx", "=", claim.index)
      .execute();
    await settle(tx, row, keepMs);
    return true;
  }

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

    /** Newest first (or oldest, ascending), a page at a time. */
    async list(
      workspace: string,
      jobUid: string,
      { limit, cursor, ascending }: { limit: number; cursor: string | null; ascending: boolean },
    ) {
      const bound = { list: "executions", workspace, jobUid, ascending };
      const [after] = cursor ? cursors.decode(cursor, bound, clock.now()) : [];
      let rows = database.read
        .selectFrom("executions")
        .selectAll()
        .where("workspace", "=", workspace)
        .where("job_uid", "=", jobUid)
        .orderBy("id", ascending ? "asc" : "desc")
        .limit(limit + 1);
      if (typeof after === "string") rows = rows.where("id", ascending ? ">" : "<", after);
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

    /** Rows of the tasks that were started, in [start, start + count). */
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

    /** Executions with work left, oldest first: what the scheduler chooses from. */
    async listActiveAcrossWorkspaces(afterId: string, limit: number): Promise<ExecutionRow[]> {
      return database.read
        .selectFrom("executions")
        .selectAll()
        .where("completed_at", "is", null)
        .where("id", ">", afterId)
        .orderBy("id")
        .limit(limit)
        .execute();
    },

    /** The next task of an execution for this holder: one that waits for a retry first, else a fresh one. */
    async claim(id: string, holder: string, leaseMs: number): Promise<TaskClaim | null> {
      return database.write(async (tx) => {
        const row = await lock(tx.queries, id);
        if (!row || row.completed_at !== null || row.status === "cancelling" || row.running >= row.parallelism)
          return null;
        const leaseUntil = clock.now() + leaseMs;
        const claim =
          (await claimRetry(tx, row, holder, leaseUntil)) ?? (await claimFresh(tx, row, holder, leaseUntil));
        if (!claim) return null;
        row.running += 1;
        row.status = "running";
        row.started_at ??= clock.now();
        await settle(tx, row, 0);
        return claim;
      });
    },

    /** The process of this attempt has started; false when the attempt is no longer ours. */
    async started({ executionId, index, attempt }: TaskClaim): Promise<boolean> {
      return database.write(async ({ queries }) => {
        const result = await queries
          .updateTable("tasks")
          .set({ started_at: clock.now(), updated_at: clock.now() })
          .where("execution_id", "=", executionId)
          .where("idx", "=", index)
          .where("attempt", "=", attempt)
          .where("status", "=", "running")
          .executeTakeFirst();
        return Number(result.numUpdatedRows) > 0;
      });
    },

    /** Keeps the leases of everything this holder still runs; answers until when. */
    async renew(holder: string, leaseMs: number): Promise<number> {
      const leaseUntil = clock.now() + leaseMs;
      await database.write(({ queries }) =>
        queries
          .updateTable("tasks")
          .set({ lease_until: leaseUntil })
          .where("status", "=", "running")
          .where("holder", "=", holder)
          .execute(),
      );
      return leaseUntil;
    },

    report: (
      claim: Pick<TaskClaim, "executionId" | "index" | "attempt">,
      outcome: TaskOutcome,
      rules: { retryAfterMs(failures: number): number; keepMs: number },
    ) => database.write((tx) => report(tx, claim, outcome, rules)),

    /** Tasks whose runner has let its lease run out. */
    async listExpiredLeases(limit: number): Promise<TaskRow[]> {
      return database.read
        .selectFrom("tasks")
        .selectAll()
        .where("status", "=", "running")
        .where("lease_until", "<", clock.now())
        .orderBy("lease_until")
        .limit(limit)
        .execute();
    },

    /** Tasks that an earlier life of this node ran. */
    async listRunningOfHolders(prefix: string, except: string): Promise<TaskRow[]> {
      return database.read
        .selectFrom("tasks")
        .selectAll()
        .where("status", "=", "running")
        .where("holder", "like", `${prefix}%`)
        .where("holder", "<>", except)
        .execute();
    },

    /** What has not started never will; what runs may finish. */
    async cancel(workspace: string, id: string, keepMs: number): Promise<ExecutionRow | null> {
      return database.write(async (tx) => {
        const row = await lock(tx.queries, id);
        if (!row || row.workspace !== workspace) return null;
        if (row.completed_at !== null)
          throw new PlatformError("conflict", `Execution '${id}' has ended already: ${row.status}.`);
        row.cancelled += row.total - row.next_index + row.retrying;
        row.next_index = row.total;
        row.retrying = 0;
        row.status = "cancelling";
        await tx.queries
          .updateTable("tasks")
          .set({ status: "cancelled", completed_at: clock.now(), updated_at: clock.now() })
          .where("execution_id", "=", id)
          .where("status", "=", "retrying")
          .execute();
        await settle(tx, row, keepMs);
        return tx.queries.selectFrom("executions").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
      });
    },

    /** The same for everything of a job that is going away. */
    async cancelAllOf(jobUid: string, keepMs: number): Promise<void> {
      const now = clock.now();
      const active = (eb: ExpressionBuilder<Tables, "executions">) =>
        eb.and([eb("job_uid", "=", jobUid), eb("completed_at", "is", null)]);
      await database.write(async ({ queries, announce }) => {
        await queries
          .updateTable("executions")
          .set({
            cancelled: sql`cancelled + total - next_index + retrying`,
            next_index: sql`total`,
            retrying: 0,
            status: sql`CASE WHEN running = 0 THEN 'cancelled' ELSE 'cancelling' END`,
            completed_at: sql`CASE WHEN running = 0 THEN CAST(${now} AS BIGINT) ELSE NULL END`,
            expires_at: sql`CASE WHEN running = 0 THEN CAST(${now + keepMs} AS BIGINT) ELSE NULL END`,
            updated_at: now,
          })
          .where(active)
          .execute();
        await queries
          .updateTable("tasks")
          .set({ status: "cancelled", completed_at: now, updated_at: now })
          .where("status", "=", "retrying")
          .where("execution_id", "in", (eb) => eb.selectFrom("executions").select("id").where("job_uid", "=", jobUid))
          .execute();
        announce({ topic: EXECUTION_TOPIC, key: jobUid });
      });
    },

    /** Removes old records, a bounded number at a time. */
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
