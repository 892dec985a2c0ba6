import type { Migration } from "./migration.ts";

/**
 * What clients pushed: the blobs that a repository may read, and its manifests. `owner` is a workspace and its creation
 * time, so that a later workspace of the same name has nothing of it.
 */
export const pushedImages: Migration = {
  id: 28,
  name: "pushed_images",
  both: [
    `CREATE TABLE pushed_blobs (
      owner {text} NOT NULL,
      repository {text} NOT NULL,
      digest {text} NOT NULL,
      size_bytes BIGINT NOT NULL,
      created_at BIGINT NOT NULL,
      PRIMARY KEY (owner, repository, digest)
    )`,
    `CREATE TABLE pushed_manifests (
      owner {text} NOT NULL,
      repository {text} NOT NULL,
      digest {text} NOT NULL,
      media_type {text} NOT NULL,
      content {text} NOT NULL,
      names {text} NOT NULL,
      subject {text} NOT NULL,
      created_at BIGINT NOT NULL,
      PRIMARY KEY (owner, repository, digest)
    )`,
  ],
};
