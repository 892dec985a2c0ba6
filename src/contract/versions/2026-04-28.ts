import { LIMIT_MAX } from "../list-query.ts";
import type { VersionStep } from "./version.ts";

/** Longest list for older clients, which read lists whole; longer ones need the paged version. */
export const BARE_LIST_MAX = 10_000;

/** The operation whose answer contained the tasks before tasks had a listing of their own. */
const TASKS_INLINE = "jobExecutionGet";

const PAGING = new Set(["cursor", "sort", "q", "anchor", "status"]);

/** Those that choose entries: a client that is not told takes the whole list for the chosen part. */
const FILTERS = ["q", "status"] as const;

/**
 * 2026-04-28 introduced paged lists with sort and search. Before, a list is a bare array, complete unless a limit is
 * given, without sort and search; and an execution of a job contains all of its tasks.
 */
export const bareLists: VersionStep = {
  since: "2026-04-28",
  liftQuery(operation, query) {
    if (operation.id === TASKS_INLINE) return { ...query, inlineTasks: "true" };
    if (!operation.paged) return query;
    // A list with an offset was paged before, in its own way.
    if (operation.query && "offset" in operation.query.shape) {
      const { cursor: _cursor, sort: _sort, q: _q, ...rest } = query;
      return rest;
    }
    const kept = Object.entries(query).filter(([key]) => !PAGING.has(key));
    const asked = query.limit === undefined ? {} : { limit: clamped(query.limit) };
    return { ...Object.fromEntries(kept), limit: String(BARE_LIST_MAX), ...asked };
  },
  warn(operation, query) {
    if (!operation.paged) return [];
    const isKept = (name: string): boolean => bareLists.liftQuery?.(operation, { ...query })[name] !== undefined;
    return FILTERS.filter((name) => (query[name] ?? "") !== "" && !isKept(name)).map(
      (name) =>
        `The query parameter '${name}' has no effect before version ${bareLists.since}: the list has all entries.`,
    );
  },
  lower(operation, response) {
    return operation.paged ? (response as { data: unknown }).data : response;
  },
};

/** Values that are not numbers are refused later. */
const clamped = (limit: string): string => (Number(limit) > LIMIT_MAX ? String(LIMIT_MAX) : limit);
