/** Read-only queries on the task queue: what may start now, how busy a job is, pages of tasks. */
import { type RawBuilder, sql } from "kysely";
import type { Clock } from "../../lib/time/clock.ts";
import type { Database } from "../database/database.ts";
import type { ExecutionRow } from "./execution.ts";

/** An execution with a task that may start now. */
export interface Claimable {
  id: string;
  workspace: string;
  job_uid: string;
  memory_mb: number;
  parallelism: number;
  running: number;
  /** Tasks that could start if there were no limit. */
  waiting: number;
  /** Running tasks of all executions of the job. */
  job_running: number;
}

export interface QueueLoad {
  jobRunning: number;
  jobWaiting: number;
  /** Running tasks of all jobs. */
  running: number;
}

/** Executions considered per job, so that a thousand waiting executions of one job do not hide another job. */
const EXECUTIONS_PER_JOB = 16;
/** Enough of those that wait to know that there is no room for another. */
const WAITING_LOOKED_AT = 1000;

export function createExecutionViews({ database, clock }: { database: Database; clock: Clock }) {
  return {
    /**
     * The oldest executions of every job that have a task to start, oldest first. The cost grows with the number of
     * unfinished jobs and running tasks, not with the number of waiting executions.
     */
    async listClaimableAcrossWorkspaces(limit: number): Promise<Claimable[]> {
      const due = dueRetries(clock.now());
      const ofJob = sql`FROM executions
        WHERE executions.job_uid = jobs.job_uid AND completed_at IS NULL AND status <> 'cancelling'
          AND running < parallelism AND (next_index < total OR (retrying > 0 AND EXISTS (SELECT 1 ${due})))
        ORDER BY executions.id LIMIT ${EXECUTIONS_PER_JOB}`;
      // PostgreSQL would evaluate the IN subquery for every execution; SQLite has no LATERAL.
      const oldest =
        database.dialect === "postgres"
          ? sql`CROSS JOIN LATERAL (SELECT executions.* ${ofJob}) executions`
          : sql`JOIN executions ON executions.id IN (SELECT oldest.id FROM (SELECT executions.id ${ofJob}) oldest)`;
      const { rows } = await sql<Claimable>`
        WITH RECURSIVE jobs (job_uid) AS (
          SELECT MIN(job_uid) FROM executions WHERE completed_at IS NULL
          UNION ALL
          SELECT (SELECT MIN(job_uid) FROM executions WHERE completed_at IS NULL AND executions.job_uid > jobs.job_uid)
          FROM jobs WHERE jobs.job_uid IS NOT NULL
        ), busy AS (
          SELECT executions.job_uid, COUNT(*) AS job_running FROM tasks JOIN executions ON executions.id = tasks.execution_id
          WHERE tasks.status = 'running' GROUP BY executions.job_uid
        )
        SELECT executions.id, workspace, executions.job_uid, COALESCE(memory_override, memory_mb) AS memory_mb, parallelism,
          running, total - next_index + (CASE WHEN retrying = 0 THEN 0 ELSE (SELECT COUNT(*) ${due}) END) AS waiting,
          COALESCE(busy.job_running, 0) AS job_running
        FROM jobs ${oldest}
        LEFT JOIN busy ON busy.job_uid = executions.job_uid
        WHERE COALESCE(busy.job_running, 0) < parallelism
        ORDER BY executions.id LIMIT ${limit}`.execute(database.read);
      return rows;
    },

    async loadOf(jobUid: string): Promise<QueueLoad> {
      const { rows } = await sql<QueueLoad>`
        SELECT (SELECT COUNT(*) FROM tasks WHERE status = 'running') AS "running",
          (SELECT COUNT(*) FROM tasks JOIN executions ON executions.id = tasks.execution_id
            WHERE tasks.status = 'running' AND executions.job_uid = ${jobUid}) AS "jobRunning",
          (SELECT COALESCE(SUM(waiting), 0) FROM (SELECT total - next_index + retrying AS waiting FROM executions
            WHERE job_uid = ${jobUid} AND completed_at IS NULL ORDER BY id LIMIT ${WAITING_LOOKED_AT}) looked) AS "jobWaiting"
        `.execute(database.read);
      const [load = { running: 0, jobRunning: 0, jobWaiting: 0 }] = rows;
      return { ...load, jobWaiting: Number(load.jobWaiting) };
    },

    async getBySlot(workspace: string, slot: string): Promise<ExecutionRow | null> {
      const row = await database.read
        .selectFrom("executions")
        .selectAll()
        .where("slot", "=", slot)
        .where("workspace", "=", workspace)
        .executeTakeFirst();
      return row ?? null;
    },

    /** Newest first, by offset: older clients page this way. */
    async listFrom(workspace: string, jobUid: string, offset: number, limit: number): Promise<ExecutionRow[]> {
      return database.read
        .selectFrom("executions")
        .selectAll()
        .where("workspace", "=", workspace)
        .where("job_uid", "=", jobUid)
        .orderBy("id", "desc")
        .limit(limit)
        .offset(offset)
        .execute();
    },
  };
}

const dueRetries = (nowMs: number): RawBuilder<unknown> =>
  sql`FROM tasks WHERE tasks.execution_id = executions.id AND tasks.status = 'retrying' AND tasks.next_at <= ${nowMs}`;
