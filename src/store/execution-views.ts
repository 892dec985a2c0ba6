/** Questions about the queue of jobs that change nothing: what may start now, how busy a job is, pages of tasks. */
import { sql } from "kysely";
import type { Clock } from "../lib/clock.ts";
import type { Database } from "./database.ts";
import type { ExecutionRow } from "./execution.ts";

/** An execution of which a task may start now. */
export interface Claimable {
  id: string;
  workspace: string;
  job_uid: string;
  memory_mb: number;
  parallelism: number;
  running: number;
  /** Tasks that could start, were there no limit. */
  waiting: number;
  /** Of all executions of the job. */
  job_running: number;
}

export interface QueueLoad {
  jobRunning: number;
  jobWaiting: number;
  /** Of all jobs. */
  running: number;
}

/** So many executions of one job are looked at; a thousand that wait must not hide another job. */
const EXECUTIONS_PER_JOB = 16;

export function createExecutionViews({ database, clock }: { database: Database; clock: Clock }) {
  return {
    /** The oldest executions of every job that have a task to start, oldest first. */
    async listClaimableAcrossWorkspaces(limit: number): Promise<Claimable[]> {
      const now = clock.now();
      const { rows } = await sql<Claimable>`
        SELECT id, workspace, job_uid, memory_mb, parallelism, running, waiting, job_running FROM (
          SELECT looked.*, ROW_NUMBER() OVER (PARTITION BY job_uid ORDER BY id) AS nth FROM (
            SELECT id, workspace, job_uid, COALESCE(memory_override, memory_mb) AS memory_mb, parallelism, running, status,
              total - next_index + (CASE WHEN retrying = 0 THEN 0 ELSE
                (SELECT COUNT(*) FROM tasks WHERE tasks.execution_id = executions.id AND tasks.status = 'retrying'
                  AND tasks.next_at <= ${now}) END) AS waiting,
              SUM(running) OVER (PARTITION BY job_uid) AS job_running
            FROM executions WHERE completed_at IS NULL) looked
          WHERE status <> 'cancelling' AND waiting > 0 AND running < parallelism AND job_running < parallelism) numbered
        WHERE nth <= ${EXECUTIONS_PER_JOB} ORDER BY id LIMIT ${limit}`.execute(database.read);
      return rows;
    },

    async loadOf(jobUid: string): Promise<QueueLoad> {
      const { rows } = await sql<QueueLoad>`
        SELECT COALESCE(SUM(running), 0) AS "running",
          COALESCE(SUM(CASE WHEN job_uid = ${jobUid} THEN running ELSE 0 END), 0) AS "jobRunning",
          COALESCE(SUM(CASE WHEN job_uid = ${jobUid} THEN total - next_index + retrying ELSE 0 END), 0) AS "jobWaiting"
        FROM executions WHERE completed_at IS NULL`.execute(database.read);
      return rows[0] ?? { running: 0, jobRunning: 0, jobWaiting: 0 };
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

    /** Newest first, from a place counted from the top: what older clients page by. */
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
