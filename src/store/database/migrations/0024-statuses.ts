import type { Migration } from "./migration.ts";

/**
 * How many resources have which status, kept with every change, and when a resource got its status. The counter has
 * several rows on PostgreSQL (`shard`), so that writers of one workspace do not wait for each other.
 */
export const statuses: Migration = {
  id: 24,
  name: "statuses",
  both: [
    `CREATE TABLE status_counts (workspace {text} NOT NULL, kind {text} NOT NULL, status {text} NOT NULL, shard INTEGER NOT NULL,
      n BIGINT NOT NULL, PRIMARY KEY (workspace, kind, status, shard))`,
    `INSERT INTO status_counts (workspace, kind, status, shard, n)
      SELECT workspace, kind, COALESCE(status, ''), 0, COUNT(*) FROM resources WHERE slot NOT LIKE '~%' GROUP BY 1, 2, 3`,
    "ALTER TABLE resources ADD COLUMN status_at BIGINT NOT NULL DEFAULT 0",
    "UPDATE resources SET status_at = updated_at WHERE status = 'FAILED'",
    "CREATE INDEX resources_failed ON resources (workspace, status_at, uid) WHERE status = 'FAILED'",
  ],
};
