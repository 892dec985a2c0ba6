import { LIMIT_MAX } from "../list-query.ts";
import type { VersionStep } from "./version.ts";

/** Older clients read a list whole; beyond this many rows they have to use the paged version. */
export const BARE_LIST_MAX = 10_000;

/** Its tasks have a listing of their own since; before, they were part of it. */
const TASKS_INLINE = "jobExecutionGet";

const PAGING = new Set(["cursor", "sort", "q", "anchor", "status"]);

/**
 * 2026-04-28 made listings pages with sort and search; before, a listing is a bare array, whole unless it has a limit,
 * and ignores both; and an execution of a job shows its tasks, however many.
 */
export const bareLists: VersionStep = {
  since: "2026-04-28",
  liftQuery(operation, query) {
    if (operation.id === TASKS_INLINE) return { ...query, inlineTasks: "true" };
    if (!operation.paged) return query;
    // A listing with an offset was paged before, in its own way.
    if (operation.query && "offset" in operation.query.shape) {
      const { cursor: _cursor, sort: _sort, q: _q, ...rest } = query;
      return rest;
    }
    const kept = Object.entries(query).filter(([key]) => !PAGING.has(key));
    const asked = query.limit === undefined ? {} : { limit: clamped(query.limit) };
    return { ...Object.fromEntries(kept), limit: String(BARE_LIST_MAX), ...asked };
  },
  lower(operation, response) {
    return operation.paged ? (response as { data: unknown }).data : response;
  },
};

/** What is no number is refused further on. */
const clamped = (limit: string): string => (Number(limit) > LIMIT_MAX ? String(LIMIT_MAX) : limit);
