/** A list that grows page by page in both directions from where it was opened, and stays fresh while it is shown. */
import { InfiniteQueryObserver, keepPreviousData } from "@tanstack/query-core";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { nameOf } from "../lib/members.ts";
import type { Collection } from "../lib/places.ts";
import { isLive } from "./live.ts";
import { queries, useAnswer } from "./query.ts";
import { collectionKey, endsOf, type ListQuery, listPage, type Page, type Spot, spotAt } from "./resources.ts";

/** While the server does not tell of changes itself. */
const EVERY_MS = 4000;
/** Above so many pages a whole new read would cost more than it tells. */
const FRESH_PAGES_MAX = 3;
/** Pages that are kept; a change reads them again, so more would cost more than they are worth. */
const KEPT_PAGES_MAX = 10;

export interface Rows {
  rows: readonly unknown[];
  /** Where the rows were asked to begin. */
  place: string;
  total: number | null;
  error: Error | null;
  isLoading: boolean;
  hasMore: boolean;
  more(): void;
  /** Loads what stands before the first row, where that is not the beginning. */
  earlier(): void;
}

const firstPage = (workspace: string, collection: Collection, query: ListQuery, from: string) => ({
  queryKey: [...collectionKey(workspace, collection), "list", query, from],
  queryFn: ({ pageParam, signal }: { pageParam: Spot; signal: AbortSignal }) =>
    listPage(workspace, collection, query, pageParam, signal),
  initialPageParam: spotAt(from),
});

/** Asks for the first rows before the list is drawn. */
export function askRows(workspace: string, collection: Collection, query: ListQuery, from: string): void {
  void queries.prefetchInfiniteQuery(firstPage(workspace, collection, query, from));
}

export function useRows(workspace: string, collection: Collection, query: ListQuery, from = ""): Rows {
  const options = {
    ...firstPage(workspace, collection, query, from),
    getNextPageParam: (last: Page) => last.next,
    getPreviousPageParam: (first: Page) => first.previous,
    maxPages: KEPT_PAGES_MAX,
    // The rows of the last question stay until the answer: a jump or a filter empties nothing in between.
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }: { state: { data?: { pages: unknown[] } | undefined } }) =>
      !isLive.value && (state.data?.pages.length ?? 0) <= FRESH_PAGES_MAX ? EVERY_MS : (false as const),
  };
  const observer = useMemo(() => new InfiniteQueryObserver(queries, options), []);
  observer.setOptions(options);
  const [, show] = useState(0);
  useLayoutEffect(() => observer.subscribe(() => show((count) => count + 1)), [observer]);
  const { data, error, isPending, isFetching, isPlaceholderData, hasNextPage, hasPreviousPage } =
    observer.getCurrentResult();
  const place = useRef(from);
  if (!isPlaceholderData) place.current = from;
  const rows = useMemo(() => withoutDoubles(data?.pages ?? []), [data]);
  return {
    rows,
    place: place.current,
    total: data?.pages[0]?.total ?? null,
    error,
    isLoading: isPending,
    hasMore: hasNextPage,
    more: () => {
      if (hasNextPage && !isFetching) void observer.fetchNextPage();
    },
    earlier: () => {
      if (hasPreviousPage && !isFetching) void observer.fetchPreviousPage();
    },
  };
}

/** Pages that meet at an edge both have the row of the edge. */
function withoutDoubles(pages: readonly Page[]): unknown[] {
  const [only] = pages;
  if (only === undefined || pages.length === 1) return only?.data ?? [];
  const seen = new Map(pages.flatMap(({ data }) => data).map((row) => [nameOf(row), row]));
  return [...seen.values()];
}

/** The places of the first and the last row of a list, for jumps into it. */
export const useEnds = (workspace: string, collection: Collection, query: ListQuery) =>
  useAnswer({
    key: [...collectionKey(workspace, collection), "ends", query],
    ask: (signal) => endsOf(workspace, collection, query, signal),
  });
