/**
 * The queue of batch jobs. A task is claimed under a lease, and every report names the attempt it is about: a runner
 * that was paused past its lease finds its report refused. Counters on the execution change in the same transaction
 * as the tasks, so they always add up and reading them costs one row.
 *
 * Tasks are claimed and reported several at a time: that many cost little more than one.
 */
import { type ExpressionBuilder, sql } from "kysely";
import { PlatformError } from "../../contract/errors.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database, Transaction } from "../database/database.ts";
import type { Tables } from "../database/schema.ts";
import {
  EXECUTION_TOPIC,
  type ExecutionRow,
  finalStatus,
  isDone,
  type TaskClaim,
  type TaskOutcome,
  type TaskRow,
} from "./execution.ts";
import { CLAIM_AT_ONCE, FRESH, LOCKED, REPORT_AT_ONCE, SETTLE, STARTED, SUCCEEDED } from "./statements.ts";

/** Most tasks per claim; a larger claim would delay other writers. */
export const CLAIM_MAX = 500;

export interface TaskStart {
  index: number;
  attempt: number;
  atMs: number;
}

export interface TaskReport {
  index: number;
  attempt: number;
  outcome: TaskOutcome;
  /** When the task's process started, unless `started` has reported it. */
  startedAtMs?: number;
}

/** A request for up to `count` tasks. */
export interface ClaimWish {
  holder: string;
  leaseMs: number;
  count: number;
}

export interface ReportRules {
  retryAfterMs(failures: number): number;
  keepMs: number;
}

export interface ExecutionQueueDeps {
  database: Database;
  clock: Clock;
  /** Called once, in the transaction that ends the execution. */
  ended(tx: Transaction, row: ExecutionRow): Promise<void>;
}

export function createExecutionQueue({ database, clock, ended }: ExecutionQueueDeps) {
  const { dialect } = database;
  const lock = ({ queries }: Transaction, id: string) => LOCKED.first(queries, dialect, [id]);

  /** Writes the changed counters, and ends the execution when they say that nothing is left. */
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
    return indexes.map((index) => freshClaim(row.id, index, held.lease_until));
  }

  /** Applies one report of a task that did not plainly succeed. */
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
        started_at: task.started_at ?? report.startedAtMs ?? null,
        ...(failed ? { exit_code: outcome.exitCode, reason: outcome.reason } : { reason: "WorkerLost" }),
      })
      .where("execution_id", "=", row.id)
      .where("idx", "=", index)
      .execute();
    return 1;
  }

  async function claimIn(tx: Transaction, id: string, { holder, leaseMs, count }: ClaimWish): Promise<TaskClaim[]> {
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
  }

  async function reportIn(tx: Transaction, id: string, reports: readonly TaskReport[], rules: ReportRules) {
    const row = await lock(tx, id);
    if (!row) return 0;
    const well = reports.filter(({ outcome }) => outcome.result === "succeeded");
    let accepted = 0;
    for (const [attempt, same] of Map.groupBy(well, (each) => each.attempt))
      accepted += await SUCCEEDED.run(tx.queries, dialect, [
        ...[clock.now(), clock.now(), startsOf(same), id, attempt],
        ...boundsOf(same),
      ]);
    row.running -= accepted;
    row.success += accepted;
    for (const each of reports)
      if (each.outcome.result !== "succeeded") accepted += await reportOne(tx, row, each, rules);
    if (accepted > 0) await settle(tx, row, rules.keepMs);
    return accepted;
  }

  /** Claims fresh tasks with one statement on PostgreSQL. Returns null when the full transaction is needed. */
  async function claimAtOnce(
    id: string,
    held: { holder: string; lease_until: number },
    count: number,
  ): Promise<TaskClaim[] | null> {
    if (dialect !== "postgres") return null;
    const now = clock.now();
    const values = [Math.min(count, CLAIM_MAX), id, now, now, held.holder, held.lease_until, now, now];
    const moved = await CLAIM_AT_ONCE.first(database.read, dialect, values);
    if (!moved) return null;
    return Array.from({ length: moved.n }, (_, n) => freshClaim(id, moved.first + n, held.lease_until));
  }

  /** Reports succeeded tasks of one attempt with one statement. Returns null when the full transaction is needed. */
  async function reportAtOnce(id: string, reports: readonly TaskReport[]): Promise<number | null> {
    const [{ attempt } = { attempt: 0 }] = reports;
    const simple = reports.every((each) => each.outcome.result === "succeeded" && each.attempt === attempt);
    if (dialect !== "postgres" || !simple || reports.length === 0) return null;
    const now = clock.now();
    const values = [id, reports.length, now, now, startsOf(reports), attempt, ...boundsOf(reports), now, id];
    const done = await REPORT_AT_ONCE.first(database.read, dialect, values);
    return done && done.held > 0 ? done.n : null;
  }

  return {
    /** Claims the next tasks of an execution: tasks due for a retry first, then fresh ones. */
    async claim(id: string, holder: string, leaseMs: number, count: number): Promise<TaskClaim[]> {
      const simple = await claimAtOnce(id, { holder, lease_until: clock.now() + leaseMs }, count);
      if (simple) return simple;
      return database.write((tx) => claimIn(tx, id, { holder, leaseMs, count }));
    },

    /** Records that processes of these attempts have started; returns the indexes that the caller still holds. */
    started: (id: string, starts: readonly TaskStart[]): Promise<Set<number>> =>
      database.write(async ({ queries }) => {
        const each = JSON.stringify(starts.map(({ index, attempt, atMs }) => [index, attempt, atMs]));
        const rows = await STARTED.all(queries, dialect, [clock.now(), each, id, ...boundsOf(starts)]);
        return new Set(rows.map(({ idx }) => idx));
      }),

    /** Renews the leases of all tasks that this holder runs; returns their new end. */
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

    /** Records how tasks of one execution ended; returns how many of the reports were accepted. */
    async report(id: string, reports: readonly TaskReport[], rules: ReportRules): Promise<number> {
      const simple = await reportAtOnce(id, reports);
      if (simple !== null) return simple;
      return database.write((tx) => reportIn(tx, id, reports, rules));
    },

    /** Reports tasks and claims their successors. SQLite does both in one commit. */
    async turn(id: string, reports: readonly TaskReport[], rules: ReportRules, next: ClaimWish): Promise<TaskClaim[]> {
      if (dialect === "postgres") {
        await this.report(id, reports, rules);
        return this.claim(id, next.holder, next.leaseMs, next.count);
      }
      return database.write(async (tx) => {
        await reportIn(tx, id, reports, rules);
        return claimIn(tx, id, next);
      });
    },

    /** Tasks whose runner did not renew its lease in time. */
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

    /** Running tasks of this node's earlier processes. */
    async listRunningOfHolders(prefix: string, except: string): Promise<TaskRow[]> {
      return database.read
        .selectFrom("tasks")
        .selectAll()
        .where("status", "=", "running")
        .where("holder", "like", `${prefix}%`)
        .where("holder", "<>", except)
        .execute();
    },

    /** Cancels an execution: waiting tasks never start, running tasks may finish. */
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

    /** Cancels all executions of a job that is being deleted. */
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

const freshClaim = (executionId: string, index: number, leaseUntil: number): TaskClaim => ({
  executionId,
  index,
  attempt: 1,
  workload: `${executionId}-${index}-1`,
  leaseUntil,
  previousWorkload: null,
});

function boundsOf(tasks: readonly { index: number }[]): [number, number] {
  const indexes = tasks.map(({ index }) => index);
  return [Math.min(...indexes), Math.max(...indexes)];
}

/** JSON pairs of a task index and the time of its start. */
const startsOf = (reports: readonly TaskReport[]): string =>
  JSON.stringify(reports.map(({ index, startedAtMs = null }) => [index, startedAtMs]));
