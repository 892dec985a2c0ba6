import type { Migration } from "./migration.ts";

/** Servers on one database, and the server that owns each resource. */
export const nodes: Migration = {
  id: 21,
  name: "nodes",
  both: [
    `CREATE TABLE nodes (id {text} PRIMARY KEY, name {text} NOT NULL, address {text}, version {text} NOT NULL, driver {text} NOT NULL,
      capabilities {text} NOT NULL, memory_mb BIGINT NOT NULL, cpus BIGINT NOT NULL, used_mb BIGINT NOT NULL,
      drained INTEGER NOT NULL, started_at BIGINT NOT NULL, heartbeat_at BIGINT NOT NULL,
      session {text} NOT NULL, folder {text} NOT NULL)`,
    "ALTER TABLE resources ADD COLUMN node {text}",
  ],
  // A SQLite file has one server, which owns everything.
  postgres: ["CREATE INDEX resources_by_node ON resources (node, kind, uid) WHERE node IS NOT NULL"],
};
