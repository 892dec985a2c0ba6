import type { Migration } from "./migration.ts";

/** Small records that expire, each read and replaced as a whole, such as rate-limit counters. */
export const records: Migration = {
  id: 7,
  name: "records",
  both: [
    "CREATE TABLE records (key {text} PRIMARY KEY, value {text} NOT NULL, expires_at BIGINT NOT NULL)",
    "CREATE INDEX records_by_end ON records (expires_at)",
  ],
};
