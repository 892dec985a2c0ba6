/**
 * The queue of batch jobs. A task is claimed under a lease, and every report names the attempt it is about: a runner
 * that was paused past its lease finds its report refused. Counters on the execution change in the same transaction
 * as the tasks, so they always add up and reading them costs one row.
 *
 * Tasks are claimed and reported several at a time: that many cost little more than one.
 */
import { type ExpressionBuilder, sql } from "kysely";
import { PlatformError } from "../contract/errors.ts";
import type { Clock } from "../lib/clock.ts";
import { type Database, fixedQuery, type Transaction } from "./database.ts";
import {
  EXECUTION_TOPIC,
  type ExecutionRow,
  finalStatus,
  isDone,
  type TaskClaim,
  type TaskOutcome,
  type TaskRow,
} from "./execution.ts";
import type { Tables } from "./schema.ts";

/** Tasks that one call claims; more would hold up others who want to write. */
export const CLAIM_MAX = 500;

export interface TaskReport {
  index: number;
  attempt: number;
  outcome: TaskOutcome;
}

export interface ReportRules {
  retryAfterMs(failures: number): number;
  keepMs: number;
}

const LOCKED = fixedQuery<ExecutionRow>({
  sqlite: "SELECT * FROM executions WHERE id = ?",
  postgres: "SELECT * FROM executions WHERE id = ? FOR UPDATE",
});
const SETTLE = fixedQuery(
  `UPDATE executions SET status = ?, next_index = ?, running = ?, retrying = ?, success = ?, failure = ?, cancelled = ?,
    retried = ?, timed_out = ?, started_at = ?, completed_at = ?, expires_at = ?, updated_at = ? WHERE id = ?`,
);
const FRESH_COLUMNS = `(execution_id, idx, status, attempt, failures, holder, lease_until, next_at, workload, scheduled_at,
  started_at, completed_at, updated_at, exit_code, reason, message)`;
/** One row for each index; a workload is named after its execution, index and attempt. */
const FRESH_VALUES = `'running', 1, 0, ?, ?, 0, ? || '-' || each.idx || '-1', ?, NULL, NULL, ?, NULL, NULL, NULL`;
const FRESH = fixedQuery({
  sqlite: `INSERT INTO tasks ${FRESH_COLUMNS} SELECT ?, each.idx, ${FRESH_VALUES} FROM (SELECT value AS idx FROM json_each(?)) each`,
  postgres: `INSERT INTO tasks ${FRESH_COLUMNS} SELECT ?, each.idx, ${FRESH_VALUES}
    FROM (SELECT CAST(value AS BIGINT) AS idx FROM json_array_elements_text(CAST(? AS JSON))) each`,
});
/** All of one attempt. The bounds lead to a part of a long execution, whatever the planner knows of it. */
const SUCCEED = `UPDATE tasks SET status = 'succeeded', exit_code = 0, reason = NULL, message = NULL, lease_until = 0,
  next_at = 0, completed_at = ?, updated_at = ? WHERE execution_id = ? AND attempt = ? AND status = 'running'
  AND idx BETWEEN ? AND ? AND idx`;
const SUCCEEDED = fixedQuery({
  sqlite: `${SUCCEED} IN (SELECT value FROM json_each(?))`,
  postgres: `${SUCCEED} = ANY (CAST(TRANSLATE(?, '[]', '{}') AS BIGINT[]))`,
});
const STARTED = fixedQuery(
  `UPDATE tasks SET started_at = ?, updated_at = ? WHERE execution_id = ? AND idx = ? AND attempt = ? AND status = 'running'`,
);

export interface ExecutionQueueDeps {
  database: Database;
  clock: Clock;
  /** Told once, in the transaction that ends it. */
  ended(tx: Transaction, row: ExecutionRow): Promise<void>;
}

export function createExecutionQueue({ database, clock, ended }: ExecutionQueueDeps) {
  const { dialect } = database;
  const lock = ({ queries }: Transaction, id: string) => LOCKED.first(queries, dialect, [id]);

  /** Writes changed counters, and the end when they say so. */
  async function settle(tx: Transaction, row: ExecutionRow, keepMs: number): Promise<void> {
    const now = clock.now();
    if (isDone(row)) Object.assign(row, { status: finalStatus(row), completed_at: now, expires_at: now + keepMs });
    row.updated_at = now;
    const counters = [row.next_index, row.running, row.retrying, row.success, row.failure, row.cancelled, row.retried];
    const times = [row.started_at, row.completed_at, row.expires_at, row.updated_at];
    await SETTLE.run(tx.queries, dialect, [row.status, ...counters, row.timed_out, ...times, row.id]);
    if (row.completed_at !== null || row.retrying > 0) tx.announce({ topic: EXECUTION_TOPIC, key: row.id });
    if (row.completed_at !== null) await ended(tx, row);
  }

  async function claimRetries(
    tx: Transaction,
    row: ExecutionRow,
    count: number,
    held: { holder: string; lease_until: number },
  ): Promise<TaskClaim[]> {
    if (row.retrying === 0 || count <= 0) return [];
    const due = tx.queries
      .selectFrom("tasks")
      .selectAll()
      .where("execution_id", "=", row.id)
      .where("status", "=", "retrying")
      .where("next_at", "<=", clock.now())
      .orderBy("idx")
      .limit(count);
    const claims: TaskClaim[] = [];
    for (const task of await due.execute()) {
      const attempt = task.attempt + 1;
      const workload = `${row.id}-${task.idx}-${attempt}`;
      await tx.queries
        .updateTable("tasks")
        .set({ ...held, status: "running", attempt, workload, started_at: null, updated_at: clock.now() })
        .where("execution_id", "=", row.id)
        .where("idx", "=", task.idx)
        .execute();
      row.retrying -= 1;
      const { idx: index, workload: previousWorkload } = task;
      claims.push({ executionId: row.id, index, attempt, workload, leaseUntil: held.lease_until, previousWorkload });
    }
    return claims;
  }

  async function claimFresh(
    { queries }: Transaction,
    row: ExecutionRow,
    count: number,
    held: { holder: string; lease_until: number },
  ): Promise<TaskClaim[]> {
    const fresh = Math.min(count, row.total - row.next_index);
    if (fresh <= 0) return [];
    const indexes = Array.from({ length: fresh }, (_, n) => row.next_index + n);
    const now = clock.now();
    const values = [row.id, held.holder, held.lease_until, row.id, now, now, JSON.stringify(indexes)];
    await FRESH.run(queries, dialect, values);
    row.next_index += fresh;
    return indexes.map((index) => ({
      executionId: row.id,
      index,
      attempt: 1,
      workload: `${row.id}-${index}-1`,
      leaseUntil: held.lease_until,
      previousWorkload: null,
    }));
  }

  /** Whatever did not simply succeed. */
  async function reportOne(tx: Transaction, row: ExecutionRow, report: TaskReport, rules: ReportRules) {
    const { index, attempt, outcome } = report;
    const mine = tx.queries.selectFrom("tasks").selectAll().where("execution_id", "=", row.id).where("idx", "=", index);
    const task = await mine.executeTakeFirst();
    if (task?.status !== "running" || task.attempt !== attempt || outcome.result === "succeeded") return 0;
    const now = clock.now();
    const failed = outcome.result === "failed";
    const failures = task.failures + (failed ? 1 : 0);
    const again = !failed || failures <= row.max_retries;
    const status = !again ? "failed" : row.status === "cancelling" ? "cancelled" : "retrying";
    row.running -= 1;
    if (status === "cancelled") row.cancelled += 1;
    if (status === "retrying") row.retrying += 1;
    if (status === "retrying" && failed) row.retried += 1;
    if (status === "failed") row.failure += 1;
    if (status === "failed" && failed && outcome.timedOut) row.timed_out += 1;
    await tx.queries
      .updateTable("tasks")
      .set({
        status,
        failures,
        updated_at: now,
        lease_until: 0,
        next_at: status === "retrying" ? now + (failed ? rules.retryAfterMs(failures) : 0) : 0,
        completed_at: status === "retrying" ? null : now,
        message: outcome.message,
        ...(failed ? { exit_code: outcome.exitCode, reason: outcome.reason } : { reason: "WorkerLost" }),
      })
      .where("execution_id", "=", row.id)
      .where("idx", "=", index)
      .execute();
    return 1;
  }

  return {
    /** The next tasks of an execution for this holder: those that wait for a retry first, then fresh ones. */
    claim: (id: string, holder: string, leaseMs: number, count: number): Promise<TaskClaim[]> =>
      database.write(async (tx) => {
        const row = await lock(tx, id);
        if (!row || row.completed_at !== null || row.status === "cancelling") return [];
        const room = Math.min(count, row.parallelism - row.running, CLAIM_MAX);
        const held = { holder, lease_until: clock.now() + leaseMs };
        const retries = await claimRetries(tx, row, room, held);
        const claims = [...retries, ...(await claimFresh(tx, row, room - retries.length, held))];
        if (claims.length === 0) return [];
        row.running += claims.length;
        row.status = "running";
        row.started_at ??= clock.now();
        await settle(tx, row, 0);
        return claims;
      }),

    /** The process of this attempt has started; false when the attempt is no longer ours. */
    started: ({ executionId, index, attempt }: TaskClaim): Promise<boolean> =>
      database.write(async ({ queries }) => {
        const now = clock.now();
        return (await STARTED.run(queries, dialect, [now, now, executionId, index, attempt])) > 0;
      }),

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

    /** How tasks of one execution have ended; answers how many of the reports were still awaited. */
    report: (id: string, reports: readonly TaskReport[], rules: ReportRules): Promise<number> =>
      database.write(async (tx) => {
        const row = await lock(tx, id);
        if (!row) return 0;
        const well = reports.filter(({ outcome }) => outcome.result === "succeeded");
        let accepted = 0;
        for (const [attempt, same] of Map.groupBy(well, (each) => each.attempt)) {
          const indexes = same.map(({ index }) => index);
          const bounds = [Math.min(...indexes), Math.max(...indexes)];
          const values = [clock.now(), clock.now(), id, attempt, ...bounds, JSON.stringify(indexes)];
          accepted += await SUCCEEDED.run(tx.queries, dialect, values);
        }
        row.running -= accepted;
        row.success += accepted;
        for (const each of reports)
          if (each.outcome.result !== "succeeded") accepted += await reportOne(tx, row, each, rules);
        if (accepted > 0) await settle(tx, row, rules.keepMs);
        return accepted;
      }),

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
    cancel: (workspace: string, id: string, keepMs: number): Promise<ExecutionRow | null> =>
      database.write(async (tx) => {
        const row = await lock(tx, id);
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
        return row;
      }),

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
  };
}
