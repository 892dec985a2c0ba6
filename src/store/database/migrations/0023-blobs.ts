import type { Migration } from "./migration.ts";

/** Archives that clients sent, for all servers of one database. The row in `blobs` comes after the last chunk. */
export const blobs: Migration = {
  id: 23,
  name: "blobs",
  both: [
    "CREATE TABLE blobs (digest {text} PRIMARY KEY, chunks BIGINT NOT NULL, written_at BIGINT NOT NULL)",
    "CREATE TABLE blob_chunks (digest {text} NOT NULL, at BIGINT NOT NULL, base64 {text} NOT NULL, PRIMARY KEY (digest, at))",
  ],
};
