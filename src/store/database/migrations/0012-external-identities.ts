import type { Migration } from "./migration.ts";

/** Identities of users at external identity providers; see external-identities.ts. */
export const externalIdentities: Migration = {
  id: 12,
  name: "external-identities",
  both: [
    `CREATE TABLE external_identities (issuer {text} NOT NULL, subject {text} NOT NULL, sub {text} NOT NULL, created_at BIGINT NOT NULL,
      PRIMARY KEY (issuer, subject))`,
    "CREATE UNIQUE INDEX external_identities_by_person ON external_identities (sub, issuer)",
  ],
};
