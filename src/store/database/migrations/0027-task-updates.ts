import type { Migration } from "./migration.ts";

/** Finds the tasks of a large execution that changed since a moment without reading the others. */
export const taskUpdates: Migration = {
  id: 27,
  name: "task_updates",
  both: ["CREATE INDEX tasks_by_update ON tasks (execution_id, updated_at, idx)"],
};
