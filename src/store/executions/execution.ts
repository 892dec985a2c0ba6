/** Executions and tasks as the core knows them. */

/** News that there may be something to start, or that an execution has ended; not of every step in between. */
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
  /** Tasks below this index were started, or cancelled before they were. */
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
  /** What must happen only once (a cron slot, a client's execution id). */
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
  /** Counts starts; whoever reports about a task must name the current one. */
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

/** Records below this key say how many tasks each server runs at a time. */
export const JOB_SLOTS_RECORDS = "job-slots/";

/** Arguments are kept this many to a row: a page of tasks reads one or two. */
export const CHUNK_TASKS = 500;

/** What a task did, as its runner saw it. */
export type TaskOutcome =
  | { result: "succeeded" }
  | { result: "failed"; exitCode: number | null; reason: string; message: string; timedOut?: boolean }
  /** The runner went away, not the task: it does not count against the retries. */
  | { result: "lost"; message: string };

export interface TaskClaim {
  executionId: string;
  index: number;
  attempt: number;
  /** uid of the workload that runs this attempt. */
  workload: string;
  /** Until then nobody else may run it; moves on as the lease is renewed. */
  leaseUntil: number;
  /** uid of the workload of the attempt before, which must be gone before this one starts. */
  previousWorkload: string | null;
}

/** The status that follows from the counters, once nothing is left to do. */
export function finalStatus(
  row: Pick<ExecutionRow, "failure" | "cancelled" | "timed_out" | "status">,
): ExecutionStatus {
  if (row.status === "cancelling") return "cancelled";
  if (row.failure > 0) return row.timed_out === row.failure ? "timeout" : "failed";
  return row.cancelled > 0 ? "cancelled" : "succeeded";
}

export const isDone = (row: Pick<ExecutionRow, "total" | "success" | "failure" | "cancelled">): boolean =>
  row.success + row.failure + row.cancelled === row.total;
