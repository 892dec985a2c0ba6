import type { Migration } from "./migration.ts";

/** The audit log; see audit.ts. Database triggers refuse to change or remove its lines. */
export const audit: Migration = {
  id: 9,
  name: "audit",
  both: [
    `CREATE TABLE audit_log (seq BIGINT PRIMARY KEY, at BIGINT NOT NULL, account_id {text}, workspace {text}, actor {text} NOT NULL,
      action {text} NOT NULL, outcome {text} NOT NULL, entry {text} NOT NULL, hash {text} NOT NULL)`,
    "CREATE INDEX audit_log_by_workspace ON audit_log (workspace, seq)",
    "CREATE INDEX audit_log_by_account ON audit_log (account_id, seq)",
    "CREATE TABLE audit_head (id INTEGER PRIMARY KEY, seq BIGINT NOT NULL, hash {text} NOT NULL)",
    "INSERT INTO audit_head (id, seq, hash) VALUES (1, 0, '')",
  ],
  sqlite: [
    "CREATE TRIGGER audit_log_update BEFORE UPDATE ON audit_log BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END",
    "CREATE TRIGGER audit_log_delete BEFORE DELETE ON audit_log BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END",
  ],
  postgres: [
    "CREATE OR REPLACE FUNCTION audit_log_fixed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$",
    "CREATE TRIGGER audit_log_fixed BEFORE UPDATE OR DELETE ON audit_log FOR EACH ROW EXECUTE FUNCTION audit_log_fixed()",
  ],
};
