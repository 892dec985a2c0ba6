import type { Migration } from "./migration.ts";

/** Certificates by the name that they are for. A row without a chain only tells why there is none yet. */
export const certificates: Migration = {
  id: 26,
  name: "certificates",
  both: [
    `CREATE TABLE certificates (
      name {text} PRIMARY KEY,
      domain_uid {text} NOT NULL,
      source {text} NOT NULL,
      chain {text} NOT NULL,
      sealed_key {text} NOT NULL,
      not_before BIGINT NOT NULL,
      not_after BIGINT NOT NULL,
      renew_at BIGINT NOT NULL,
      failure {text} NOT NULL,
      failures BIGINT NOT NULL,
      retry_at BIGINT NOT NULL
    )`,
    "CREATE INDEX certificates_domain ON certificates (domain_uid)",
    "CREATE TABLE acme_accounts (directory {text} PRIMARY KEY, url {text} NOT NULL, sealed_key {text} NOT NULL)",
  ],
};
