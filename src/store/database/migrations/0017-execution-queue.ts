import type { Migration } from "./migration.ts";

/** Indexes waiting executions by job, so that ten thousand executions of one job do not delay another job. */
export const executionQueue: Migration = {
  id: 17,
  name: "execution-queue",
  both: [
    "DROP INDEX executions_active",
    "CREATE INDEX executions_waiting ON executions (job_uid, id) WHERE completed_at IS NULL",
  ],
};
