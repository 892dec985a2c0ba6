import type { Migration } from "./migration.ts";

/**
 * Executions of jobs. A task gets a row only when it starts. Waiting tasks are one number (next_index) and their
 * arguments, stored in chunks, so that creating an execution of 100,000 tasks takes no longer than writing its text.
 */
export const executions: Migration = {
  id: 3,
  name: "executions",
  both: [
    `CREATE TABLE executions (id {text} PRIMARY KEY, workspace {text} NOT NULL, job_uid {text} NOT NULL, job {text} NOT NULL,
      status {text} NOT NULL, total BIGINT NOT NULL, next_index BIGINT NOT NULL, running BIGINT NOT NULL, retrying BIGINT NOT NULL,
      success BIGINT NOT NULL, failure BIGINT NOT NULL, cancelled BIGINT NOT NULL, retried BIGINT NOT NULL, timed_out BIGINT NOT NULL,
      parallelism BIGINT NOT NULL, max_retries BIGINT NOT NULL, timeout_s BIGINT NOT NULL, memory_mb BIGINT NOT NULL,
      memory_override BIGINT, env_override {text}, revision {text} NOT NULL, slot {text} UNIQUE, cause {text} NOT NULL,
      created_by {text} NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, started_at BIGINT, completed_at BIGINT,
      expires_at BIGINT)`,
    "CREATE INDEX executions_by_job ON executions (workspace, job_uid, id)",
    "CREATE INDEX executions_active ON executions (id) WHERE completed_at IS NULL",
    "CREATE INDEX executions_old ON executions (expires_at) WHERE expires_at IS NOT NULL",
    "CREATE TABLE execution_chunks (execution_id {text} NOT NULL, chunk BIGINT NOT NULL, tasks {text} NOT NULL, PRIMARY KEY (execution_id, chunk))",
    `CREATE TABLE tasks (execution_id {text} NOT NULL, idx BIGINT NOT NULL, status {text} NOT NULL, attempt BIGINT NOT NULL,
      failures BIGINT NOT NULL, holder {text} NOT NULL, lease_until BIGINT NOT NULL, next_at BIGINT NOT NULL, workload {text} NOT NULL,
      scheduled_at BIGINT NOT NULL, started_at BIGINT, completed_at BIGINT, updated_at BIGINT NOT NULL, exit_code BIGINT,
      reason {text}, message {text}, PRIMARY KEY (execution_id, idx))`,
    "CREATE INDEX tasks_running ON tasks (lease_until) WHERE status = 'running'",
    "CREATE INDEX tasks_retrying ON tasks (execution_id, next_at) WHERE status = 'retrying'",
  ],
};
