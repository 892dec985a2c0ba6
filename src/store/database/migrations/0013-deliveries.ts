import type { Migration } from "./migration.ts";

/** Requests, executions and callbacks that the platform delivers in the background; see deliveries.ts. */
export const deliveries: Migration = {
  id: 13,
  name: "deliveries",
  both: [
    `CREATE TABLE deliveries (id {text} PRIMARY KEY, workspace {text} NOT NULL, kind {text} NOT NULL, uid {text} NOT NULL,
      trigger_id {text} NOT NULL, cause {text} NOT NULL, phase {text} NOT NULL, sealed {text} NOT NULL, bytes BIGINT NOT NULL,
      attempt BIGINT NOT NULL, failures BIGINT NOT NULL, holder {text} NOT NULL, due_at BIGINT NOT NULL, deadline_at BIGINT NOT NULL,
      created_at BIGINT NOT NULL)`,
    "CREATE INDEX deliveries_due ON deliveries (phase, due_at)",
    "CREATE INDEX deliveries_by_workspace ON deliveries (workspace)",
    "CREATE TABLE delivery_counts (workspace {text} PRIMARY KEY, waiting BIGINT NOT NULL, bytes BIGINT NOT NULL)",
  ],
};
