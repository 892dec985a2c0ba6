import type { Migration } from "./migration.ts";

/** What waits is found by its job, so that ten thousand executions of one do not stand before another's. */
export const executionQueue: Migration = {
  id: 17,
  name: "execution-queue",
  both: [
    "DROP INDEX executions_active",
    "CREATE INDEX executions_waiting ON executions (job_uid, id) WHERE completed_at IS NULL",
  ],
};
