import type { VersionStep } from "./index.ts";

/** Older clients read a list whole; beyond this many rows they have to use the paged version. */
export const BARE_LIST_MAX = 10_000;

const PAGING = new Set(["cursor", "limit", "sort", "q", "anchor", "status"]);

/** 2026-04-28 made listings pages with sort and search; before, a listing is a bare array and ignores both. */
export const bareLists: VersionStep = {
  since: "2026-04-28",
  liftQuery(operation, query) {
    if (!operation.paged) return query;
    const kept = Object.entries(query).filter(([key]) => !PAGING.has(key));
    return { ...Object.fromEntries(kept), limit: String(BARE_LIST_MAX) };
  },
  lower(operation, response) {
    return operation.paged ? (response as { data: unknown }).data : response;
  },
};
