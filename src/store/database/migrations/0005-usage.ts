import type { Migration } from "./migration.ts";

/**
 * The usage ledger. Rows of the big tables hold small integers only: names and UUIDs are written once in usage_series,
 * accounts once in usage_accounts. Events are stored in order of time, so that new ones are appended at the end and an
 * old period is read or removed as one range. Rollups are stored by account, level and time, as queries ask for them.
 */
export const usage: Migration = {
  id: 5,
  name: "usage",
  both: [
    "CREATE TABLE usage_accounts (id {serial}, account_id {text} NOT NULL UNIQUE)",
    `CREATE TABLE usage_series (id {serial}, account INTEGER NOT NULL, named SMALLINT NOT NULL, workspace {text} NOT NULL,
      resource_type {text} NOT NULL, resource_name {text} NOT NULL, resource_uuid {text} NOT NULL, dimension {text} NOT NULL,
      unnamed_id INTEGER,
      UNIQUE (account, named, workspace, resource_type, resource_name, resource_uuid, dimension))`,
    "CREATE INDEX usage_series_by_name ON usage_series (account, resource_name)",
    "CREATE INDEX usage_series_by_uuid ON usage_series (account, resource_uuid)",
    `CREATE TABLE usage_events (start_ms BIGINT NOT NULL, series_id INTEGER NOT NULL, event_key {text} NOT NULL, end_ms BIGINT NOT NULL,
      quantity BIGINT NOT NULL, PRIMARY KEY (start_ms, series_id, event_key)) {without_rowid}`,
    `CREATE TABLE usage_rollups (account INTEGER NOT NULL, level SMALLINT NOT NULL, bucket INTEGER NOT NULL, series_id INTEGER NOT NULL,
      quantity BIGINT NOT NULL, cost BIGINT NOT NULL, PRIMARY KEY (account, level, bucket, series_id)) {without_rowid}`,
    `CREATE TABLE usage_spans (series_id INTEGER NOT NULL, node {text} NOT NULL, start_ms BIGINT NOT NULL, rate BIGINT NOT NULL,
      span_key {text} NOT NULL, price_numerator BIGINT NOT NULL, price_denominator BIGINT NOT NULL, PRIMARY KEY (series_id, node))`,
    "CREATE INDEX usage_spans_by_node ON usage_spans (node)",
    // The time until which a node has metered a series whose span it closed.
    `CREATE TABLE usage_metered (series_id INTEGER NOT NULL, node {text} NOT NULL, until_ms BIGINT NOT NULL,
      PRIMARY KEY (series_id, node)) {without_rowid}`,
    "CREATE TABLE usage_meters (node {text} PRIMARY KEY, covered_until BIGINT NOT NULL, era INTEGER NOT NULL)",
    // One row: the first hour whose events are kept.
    "CREATE TABLE usage_retention (id INTEGER PRIMARY KEY, events_since INTEGER NOT NULL)",
  ],
  // A covering index: SQLite reads one resource's history from the index alone. On PostgreSQL it would rule out
  // heap-only (HOT) updates of the sums, so PostgreSQL has the plain index.
  sqlite: ["CREATE INDEX usage_rollups_by_series ON usage_rollups (series_id, level, bucket, quantity, cost)"],
  postgres: [
    "CREATE INDEX usage_rollups_by_series ON usage_rollups (series_id, level, bucket)",
    "ALTER TABLE usage_rollups SET (fillfactor = 80)",
  ],
};
