import type { Migration } from "./migration.ts";

/** Bytes of each pushed manifest, so that those of a workspace are added up without reading them. */
export const manifestSizes: Migration = {
  id: 30,
  name: "manifest_sizes",
  both: [
    "ALTER TABLE pushed_manifests ADD COLUMN size_bytes BIGINT NOT NULL DEFAULT 0",
    "UPDATE pushed_manifests SET size_bytes = LENGTH(content)",
  ],
};
