/** Executions and tasks as the core knows them. */

/** A task may be ready to start, or an execution has ended. Not announced for steps in between. */
export const EXECUTION_TOPIC = "execution";

export type ExecutionStatus =
  | "queued"
  | "pending"
  | "running"
  | "cancelling"
  | "cancelled"
  | "failed"
  | "succeeded"
  | "timeout";
export type TaskStatus = "pending" | "running" | "retrying" | "succeeded" | "failed" | "cancelled";

export interface ExecutionRow {
  id: string;
  workspace: string;
  job_uid: string;
  job: string;
  status: ExecutionStatus;
  total: number;
  /** Tasks below this index were started, or cancelled before their start. */
  next_index: number;
  running: number;
  retrying: number;
  success: number;
  failure: number;
  cancelled: number;
  retried: number;
  timed_out: number;
  parallelism: number;
  max_retries: number;
  timeout_s: number;
  memory_mb: number;
  memory_override: number | null;
  env_override: string | null;
  revision: string;
  /** A unique key (a cron slot, a client's execution id) for executions that must be created only once. */
  slot: string | null;
  cause: string;
  created_by: string;
  created_at: number;
  updated_at: number;
  started_at: number | null;
  completed_at: number | null;
  expires_at: number | null;
}

export interface TaskRow {
  execution_id: string;
  idx: number;
  status: TaskStatus;
  /** Counts starts. A report about a task must name the current attempt. */
  attempt: number;
  failures: number;
  holder: string;
  lease_until: number;
  next_at: number;
  workload: string;
  scheduled_at: number;
  started_at: number | null;
  completed_at: number | null;
  updated_at: number;
  exit_code: number | null;
  reason: string | null;
  message: string | null;
}

export interface ChunkRow {
  execution_id: string;
  chunk: number;
  tasks: string;
}

/** Key prefix of the records that say how many tasks each server runs at a time. */
export const JOB_SLOTS_RECORDS = "job-slots/";

/** Tasks whose arguments share one row, so that a page of tasks reads one or two rows. */
export const CHUNK_TASKS = 500;

/** The result of a task as its runner saw it. */
export type TaskOutcome =
  | { result: "succeeded" }
  | { result: "failed"; exitCode: number | null; reason: string; message: string; timedOut?: boolean }
  /** The runner was lost, not the task: the attempt does not count against the retries. */
  | { result: "lost"; message: string };

export interface TaskClaim {
  executionId: string;
  index: number;
  attempt: number;
  /** uid of the workload that runs this attempt. */
  workload: string;
  /** End of the lease: until then no other runner may run the task. Moves on when the lease is renewed. */
  leaseUntil: number;
  /** uid of the previous attempt's workload, which must be gone before this attempt starts. */
  previousWorkload: string | null;
}

/** The final status according to the counters, once no task is left. */
export function finalStatus(
  row: Pick<ExecutionRow, "failure" | "cancelled" | "timed_out" | "status">,
): ExecutionStatus {
  if (row.status === "cancelling") return "cancelled";
  if (row.failure > 0) return row.timed_out === row.failure ? "timeout" : "failed";
  return row.cancelled > 0 ? "cancelled" : "succeeded";
}

export const isDone = (row: Pick<ExecutionRow, "total" | "success" | "failure" | "cancelled">): boolean =>
  row.success + row.failure + row.cancelled === row.total;
