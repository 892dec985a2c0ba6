import type { Migration } from "./migration.ts";

/** Resources that one workspace shares with others (see shares.ts), and token signing keys (see signing-keys.ts). */
export const shares: Migration = {
  id: 4,
  name: "shares",
  both: [
    `CREATE TABLE shares (uid {text} NOT NULL, target {text} NOT NULL, workspace {text} NOT NULL, created_by {text} NOT NULL,
      created_at BIGINT NOT NULL, PRIMARY KEY (uid, target))`,
    "CREATE INDEX shares_by_target ON shares (target)",
    "CREATE INDEX shares_by_workspace ON shares (workspace)",
    `CREATE TABLE share_offers (id {text} PRIMARY KEY, uid {text} NOT NULL, target {text} NOT NULL, workspace {text} NOT NULL,
      created_by {text} NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, UNIQUE (uid, target))`,
    "CREATE INDEX share_offers_by_target ON share_offers (target)",
    "CREATE INDEX share_offers_by_workspace ON share_offers (workspace)",
    `CREATE TABLE signing_keys (id {text} PRIMARY KEY, purpose {text} NOT NULL, public_key {text} NOT NULL, sealed_key {text} NOT NULL,
      created_at BIGINT NOT NULL)`,
    "CREATE INDEX signing_keys_by_purpose ON signing_keys (purpose, created_at)",
  ],
};
