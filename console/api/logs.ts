/** Lines of workloads: those that were written, older ones page by page, new ones as they come, and counts over time. */
import { useEffect, useRef, useState } from "preact/hooks";
import { eventsOf } from "../lib/events.ts";
import { type LinePage, type LogAnswer, type LogLine, mergePage, withNewLines } from "../lib/log-lines.ts";
import { call, send } from "./call.ts";
import { ApiFailure } from "./failure.ts";
import { useAnswer } from "./query.ts";

export interface LogQuery {
  workspace: string;
  /** A kind in the plural. */
  plural: string;
  /** A workload; empty = all of the kind. */
  name: string;
  search: string;
  severity: string;
  traceId: string;
  /** Times in ISO 8601; an empty end = now, and what comes. */
  start: string;
  end: string;
}

export const LOGS_PATH = "/observability/logs";
const PAGE_LINES = 1000;
/** Lines that a page holds. Of lines that come the oldest go first; no older ones are read beyond it. */
const KEPT_MAX = 100_000;
const DOWNLOADED_MAX = 100_000;
const AGAIN_MS = 2000;
const BUCKETS = 80;
const COUNT_EVERY_MS = 5000;

const subject = ({ plural, name, search, severity, traceId }: LogQuery) => ({
  ...{ resourceType: plural, workloadIds: name, search, severity, traceId },
});

/** The question of a page of lines, as the API takes it. */
export const logParameters = (query: LogQuery): Readonly<Record<string, string>> => ({
  ...subject(query),
  start: query.start,
  end: query.end,
});

const readPage = async (query: LogQuery, before: string, signal?: AbortSignal): Promise<LinePage> =>
  mergePage(
    await call<LogAnswer>({
      path: LOGS_PATH,
      query: { ...logParameters(query), before, limit: String(PAGE_LINES) },
      workspace: query.workspace,
      ...(signal ? { signal } : {}),
    }),
  );

export interface Lines {
  lines: readonly LogLine[];
  /** Where older lines begin; null = there are none. */
  before: string | null;
  isLoading: boolean;
  error: Error | null;
  older(): void;
}

const NONE: readonly LogLine[] = [];

/** Lines of the range, and with an open end those that come. Nothing is asked again while `isPaused`. */
export function useLines(query: LogQuery, isPaused: boolean): Lines {
  const key = JSON.stringify(query);
  const [lines, setLines] = useState<readonly LogLine[]>(NONE);
  const [before, setBefore] = useState<string | null>(null);
  const [isLoading, setLoading] = useState(true);
  const [error, setError] = useState<Error | null>(null);
  const isReading = useRef(false);
  useEffect(() => {
    const ending = new AbortController();
    setLoading(true);
    setLines(NONE);
    readPage(query, "", ending.signal).then(
      (page) => {
        setLines(page.lines);
        setBefore(page.before);
        setError(null);
        setLoading(false);
      },
      (failure: Error) => {
        if (ending.signal.aborted) return;
        setError(failure);
        setLoading(false);
      },
    );
    return () => ending.abort();
  }, [key]);
  const isFollowing = !isPaused && !isLoading && error === null && query.end === "";
  useEffect(() => {
    if (!isFollowing) return;
    const ending = new AbortController();
    const last = lines.at(-1)?.timestamp ?? new Date(Date.now() - AGAIN_MS).toISOString();
    void follow(query, last, ending.signal, (news) => setLines((old) => withNewLines(old, news, KEPT_MAX)));
    return () => ending.abort();
  }, [key, isFollowing]);
  return {
    lines,
    before,
    isLoading,
    error,
    older: () => {
      if (before === null || isReading.current || lines.length >= KEPT_MAX) return;
      isReading.current = true;
      void readPage(query, before)
        .then(
          (page) => {
            setLines((now) => [...page.lines, ...now]);
            setBefore(page.before);
          },
          (failure: Error) => setError(failure),
        )
        .finally(() => {
          isReading.current = false;
        });
    },
  };
}

/** Tells new lines until the signal; a connection that breaks is made again from the last line on. */
async function follow(
  query: LogQuery,
  from: string,
  ending: AbortSignal,
  tell: (lines: readonly LogLine[]) => void,
): Promise<void> {
  let after = from;
  while (!ending.aborted) {
    try {
      const asked = { path: `${LOGS_PATH}/follow`, query: { ...subject(query), after }, workspace: query.workspace };
      const { body } = await send({ ...asked, signal: ending });
      if (body === null) return;
      for await (const { id, event, data } of eventsOf(body)) {
        if (event !== "lines") continue;
        const { workload, logs } = JSON.parse(data) as { workload: string; logs: Omit<LogLine, "workload">[] };
        tell(logs.map((line) => ({ ...line, workload })));
        if (id !== "") after = id;
      }
    } catch (error) {
      if (error instanceof ApiFailure && error.status >= 400 && error.status < 500 && error.status !== 429) return;
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

export interface Histogram {
  start: string;
  end: string;
  stepMs: number;
  info: readonly number[];
  warning: readonly number[];
  error: readonly number[];
  total: number;
}

export const useHistogram = (query: LogQuery, isPaused: boolean) =>
  useAnswer<Histogram>({
    key: ["log-histogram", query],
    everyMs: isPaused || query.end !== "" ? undefined : COUNT_EVERY_MS,
    ask: (signal) =>
      call({
        path: `${LOGS_PATH}/histogram`,
        query: { ...subject(query), start: query.start, end: query.end, buckets: String(BUCKETS) },
        workspace: query.workspace,
        signal,
      }),
  });

/** Every line of the range as text, oldest first. */
export async function downloadText(query: LogQuery, isWanted: (line: LogLine) => boolean): Promise<string> {
  let [all, before]: [readonly LogLine[], string | null] = [[], ""];
  while (before !== null && all.length < DOWNLOADED_MAX) {
    const page: LinePage = await readPage(query, before);
    all = [...page.lines, ...all];
    before = page.before;
  }
  const text = all.filter(isWanted).map(({ timestamp, workload, message }) => `${timestamp} ${workload} ${message}\n`);
  return text.join("");
}
