import type { Migration } from "./migration.ts";

/** When a certificate was revoked; 0 for one that was not. */
export const revokedCertificates: Migration = {
  id: 29,
  name: "revoked_certificates",
  both: ["ALTER TABLE certificates ADD COLUMN revoked_at BIGINT NOT NULL DEFAULT 0"],
};
