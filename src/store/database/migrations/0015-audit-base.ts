import type { Migration } from "./migration.ts";

/** Where the audit log begins after pruning; see audit-retention.ts. Only lines before that point may be removed. */
export const auditBase: Migration = {
  id: 15,
  name: "audit-base",
  both: [
    "CREATE TABLE audit_base (id INTEGER PRIMARY KEY, seq BIGINT NOT NULL, hash {text} NOT NULL, seal {text} NOT NULL)",
    "INSERT INTO audit_base (id, seq, hash, seal) VALUES (1, 0, '', '')",
  ],
  sqlite: [
    "DROP TRIGGER audit_log_delete",
    `CREATE TRIGGER audit_log_delete BEFORE DELETE ON audit_log WHEN OLD.seq > (SELECT seq FROM audit_base WHERE id = 1)
      BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END`,
  ],
  postgres: [
    `CREATE OR REPLACE FUNCTION audit_log_fixed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF TG_OP = 'DELETE' AND OLD.seq <= (SELECT seq FROM audit_base WHERE id = 1) THEN RETURN OLD; END IF;
      RAISE EXCEPTION 'the audit log is append-only'; END $$`,
  ],
};
