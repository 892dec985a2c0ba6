import type { Migration } from "./migration.ts";

/** A usage series may also name the subject that used it. The table is rebuilt because its unique key gets a column. */
export const usageSubjects: Migration = {
  id: 11,
  name: "usage subjects",
  both: [
    `CREATE TABLE usage_series_with_subjects (id {serial}, account INTEGER NOT NULL, named SMALLINT NOT NULL, workspace {text} NOT NULL,
      resource_type {text} NOT NULL, resource_name {text} NOT NULL, resource_uuid {text} NOT NULL, dimension {text} NOT NULL,
      subject {text} NOT NULL, unnamed_id INTEGER,
      UNIQUE (account, named, workspace, resource_type, resource_name, resource_uuid, dimension, subject))`,
    `INSERT INTO usage_series_with_subjects (id, account, named, workspace, resource_type, resource_name, resource_uuid, dimension, subject, unnamed_id)
      SELECT id, account, named, workspace, resource_type, resource_name, resource_uuid, dimension, '', unnamed_id FROM usage_series`,
    "DROP TABLE usage_series",
    "ALTER TABLE usage_series_with_subjects RENAME TO usage_series",
    "CREATE INDEX usage_series_by_name ON usage_series (account, resource_name)",
    "CREATE INDEX usage_series_by_uuid ON usage_series (account, resource_uuid)",
  ],
  postgres: [
    "SELECT setval(pg_get_serial_sequence('usage_series', 'id'), (SELECT COALESCE(MAX(id), 0) + 1 FROM usage_series), false)",
  ],
};
