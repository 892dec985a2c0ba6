/** Answers of the server, kept and shared by the components that show them. */
import { MutationObserver, QueryClient, QueryObserver, type QueryObserverResult } from "@tanstack/query-core";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { ApiFailure } from "./failure.ts";

const RETRIES_MAX = 3;

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2000,
      // A refusal is an answer; only a server that cannot be reached is asked again.
      retry: (count, error) => count < RETRIES_MAX && error instanceof ApiFailure && error.status === 0,
    },
  },
});
queries.mount();

export interface Question<T> {
  key: readonly unknown[];
  ask(signal: AbortSignal): Promise<T>;
  /** Asked again this often while it is shown; a function decides by the last answer. */
  everyMs?: number | undefined | ((last: T | undefined) => number);
  enabled?: boolean;
}

/** Asks before a component does; the component then finds the answer, or the request on its way. */
export function readAhead<T>({ key, ask }: Question<T>): void {
  void queries.prefetchQuery({ queryKey: key, queryFn: ({ signal }) => ask(signal) });
}

export function useAnswer<T>({ key, ask, everyMs, enabled = true }: Question<T>): QueryObserverResult<T, Error> {
  const options = {
    queryKey: key,
    queryFn: ({ signal }: { signal: AbortSignal }) => ask(signal),
    refetchInterval:
      typeof everyMs === "function"
        ? ({ state }: { state: { data: T | undefined } }) => everyMs(state.data)
        : (everyMs ?? (false as const)),
    enabled,
  };
  const observer = useMemo(() => new QueryObserver<T, Error>(queries, options), []);
  observer.setOptions(options);
  const [, show] = useState(0);
  // The question goes out with the drawing of the page and not, as with `useEffect`, a frame after it.
  useLayoutEffect(() => observer.subscribe(() => show((count) => count + 1)), [observer]);
  return observer.getOptimisticResult(queries.defaultQueryOptions(options));
}

export interface Action<T> {
  run(given: T): Promise<void>;
  busy: boolean;
  error: Error | null;
}

/** Something that a person does once: it is busy until the server has answered. */
export function useAction<T>(work: (given: T) => Promise<unknown>): Action<T> {
  const observer = useMemo(() => new MutationObserver<unknown, Error, T>(queries, { mutationFn: work }), []);
  observer.setOptions({ mutationFn: work });
  const [result, show] = useState(observer.getCurrentResult());
  useEffect(() => observer.subscribe((next) => show(next)), [observer]);
  return {
    busy: result.isPending,
    error: result.error,
    run: (given) =>
      observer.mutate(given).then(
        () => {},
        () => {}, // shown as `error`
      ),
  };
}
