import type { Migration } from "./migration.ts";

/** Links between resources, and exclusively held words; see links.ts. */
export const links: Migration = {
  id: 2,
  name: "links",
  both: [
    `CREATE TABLE resource_links (
      uid {text} NOT NULL,
      workspace {text} NOT NULL,
      kind {text} NOT NULL,
      name {text} NOT NULL,
      target_workspace {text} NOT NULL,
      target_kind {text} NOT NULL,
      target {text} NOT NULL,
      exclusive INTEGER NOT NULL,
      PRIMARY KEY (uid, target_kind, target)
    )`,
    "CREATE INDEX resource_links_by_target ON resource_links (target_workspace, target_kind, target, kind)",
    "CREATE UNIQUE INDEX resource_links_exclusive ON resource_links (target_workspace, target_kind, target) WHERE exclusive = 1",
    "CREATE INDEX resource_links_by_workspace ON resource_links (workspace)",
  ],
};
