import type { Migration } from "./migration.ts";

/** Conversations of agents; see threads.ts. */
export const threads: Migration = {
  id: 16,
  name: "threads",
  both: [
    `CREATE TABLE threads (agent_uid {text} NOT NULL, thread_id {text} NOT NULL, first_seq BIGINT NOT NULL, next_seq BIGINT NOT NULL,
      bytes BIGINT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL, expires_at BIGINT NOT NULL,
      PRIMARY KEY (agent_uid, thread_id))`,
    "CREATE INDEX threads_by_use ON threads (agent_uid, updated_at)",
    "CREATE INDEX threads_by_end ON threads (expires_at)",
    `CREATE TABLE thread_messages (agent_uid {text} NOT NULL, thread_id {text} NOT NULL, seq BIGINT NOT NULL, sealed {text} NOT NULL,
      bytes BIGINT NOT NULL, PRIMARY KEY (agent_uid, thread_id, seq))`,
  ],
};
