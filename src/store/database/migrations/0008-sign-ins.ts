import type { Migration } from "./migration.ts";

/** Sign-in attempts, counted across all servers so that guessing passwords stays slow; see sign-in-tries.ts. */
export const signIns: Migration = {
  id: 8,
  name: "sign-ins",
  both: [
    "ALTER TABLE oauth_records RENAME COLUMN grant_id TO grant_hash",
    `CREATE TABLE sign_in_tries (key {text} PRIMARY KEY, tries BIGINT NOT NULL, since BIGINT NOT NULL)`,
    "CREATE INDEX sign_in_tries_by_age ON sign_in_tries (since)",
  ],
};
