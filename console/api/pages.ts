/** A list that grows page by page, and stays fresh while it is shown. */
import { InfiniteQueryObserver } from "@tanstack/query-core";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Collection } from "../lib/places.ts";
import { isLive } from "./live.ts";
import { queries } from "./query.ts";
import { collectionKey, type ListQuery, listPage, type Page } from "./resources.ts";

/** While the server does not tell of changes itself. */
const EVERY_MS = 4000;
/** Above so many pages a whole new read would cost more than it tells. */
const FRESH_PAGES_MAX = 3;

export interface Rows {
  rows: readonly unknown[];
  total: number | null;
  error: Error | null;
  isLoading: boolean;
  hasMore: boolean;
  more(): void;
}

export function useRows(workspace: string, collection: Collection, query: ListQuery): Rows {
  const options = {
    queryKey: [...collectionKey(workspace, collection), "list", query],
    queryFn: ({ pageParam, signal }: { pageParam: string | null; signal: AbortSignal }) =>
      listPage(workspace, collection, query, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (last: Page) => last.next,
    refetchInterval: ({ state }: { state: { data?: { pages: unknown[] } | undefined } }) =>
      !isLive.value && (state.data?.pages.length ?? 0) <= FRESH_PAGES_MAX ? EVERY_MS : (false as const),
  };
  const observer = useMemo(() => new InfiniteQueryObserver(queries, options), []);
  observer.setOptions(options);
  const [, show] = useState(0);
  useEffect(() => observer.subscribe(() => show((count) => count + 1)), [observer]);
  const { data, error, isPending, hasNextPage, isFetchingNextPage } = observer.getCurrentResult();
  return {
    rows: data?.pages.flatMap((page) => page.data) ?? [],
    total: data?.pages[0]?.total ?? null,
    error,
    isLoading: isPending,
    hasMore: hasNextPage,
    more: () => {
      if (hasNextPage && !isFetchingNextPage) void observer.fetchNextPage();
    },
  };
}
