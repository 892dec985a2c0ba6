import type { Migration } from "./migration.ts";

/** Finds the few resources of a list that have a rare status without reading the others. */
export const byStatus: Migration = {
  id: 25,
  name: "by_status",
  both: ["CREATE INDEX resources_by_status ON resources (workspace, kind, parent, status, uid)"],
};
