/** Conversations with an agent: its threads, what it keeps of them, and its answers as they come. */
import { textOfAnswer, textOfEvent } from "../lib/answer-text.ts";
import { bounded, textOf } from "../lib/bounded.ts";
import { eventsOf } from "../lib/events.ts";
import { pathSegment } from "../lib/path-segment.ts";
import { call } from "./call.ts";
import { queries, useAnswer } from "./query.ts";
import { sendToWorkload, type Workload } from "./workload.ts";

export interface ThreadSummary {
  id: string;
  messageCount: number;
  updatedAt?: string;
}

export interface Thread extends ThreadSummary {
  messages: readonly unknown[];
}

/** Threads in one request; the list grows by so many. */
export const THREADS_PAGE = 100;
/** Messages of a thread that are shown: the newest. */
const MESSAGES_SHOWN = "200";
/** An answer that is longer is no conversation. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

const pathOf = ({ name }: Workload): string => `/agents/${encodeURIComponent(name)}/threads`;
const keyOf = ({ workspace, name }: Workload): readonly unknown[] => ["threads", workspace, name];

interface ThreadPage {
  data: readonly ThreadSummary[];
  meta: { hasMore: boolean; nextCursor: string };
}

/** The first threads in the order of their ids, so many pages of them. */
export const useThreads = (workload: Workload, pages: number) =>
  useAnswer({
    key: [...keyOf(workload), "list", pages],
    ask: async (signal) => {
      const threads: ThreadSummary[] = [];
      let cursor = "";
      for (let page = 0; page < pages; page += 1) {
        const query = { limit: String(THREADS_PAGE), cursor };
        const { workspace } = workload;
        const { data, meta } = await call<ThreadPage>({ path: pathOf(workload), query, workspace, signal });
        threads.push(...data);
        cursor = meta.hasMore ? meta.nextCursor : "";
        if (cursor === "") break;
      }
      return { threads, hasMore: cursor !== "" };
    },
  });

export const useThread = (workload: Workload, id: string, enabled: boolean) =>
  useAnswer<Thread>({
    key: [...keyOf(workload), "one", id],
    enabled,
    ask: async (signal) => {
      const path = `${pathOf(workload)}/${pathSegment(id)}`;
      return call({ path, query: { limit: MESSAGES_SHOWN }, workspace: workload.workspace, signal });
    },
  });

export const threadsChanged = (workload: Workload): Promise<void> =>
  queries.invalidateQueries({ queryKey: keyOf(workload) });

export async function forgetThread(workload: Workload, id: string): Promise<void> {
  const path = `${pathOf(workload)}/${pathSegment(id)}`;
  await call({ method: "DELETE", path, workspace: workload.workspace });
  await threadsChanged(workload);
}

/** Yields the answer again and again while it grows: events, text as it comes, or JSON at once. */
export async function* sayTo(
  workload: Workload,
  threadId: string,
  inputs: string,
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  const headers = { "x-service-thread-id": threadId, accept: "text/event-stream, application/json, text/plain" };
  const response = await sendToWorkload(workload, { method: "POST", path: "/", body: { inputs }, headers, signal });
  const type = response.headers.get("content-type") ?? "";
  if (response.body === null || /\bjson\b/.test(type)) {
    yield textOfAnswer(await textOf(response, ANSWER_BYTES_MAX));
    return;
  }
  const body = bounded(response.body, ANSWER_BYTES_MAX);
  let whole = "";
  for await (const part of type.startsWith("text/event-stream") ? eventTexts(body) : texts(body)) {
    whole += part;
    yield whole;
  }
}

async function* eventTexts(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  for await (const { data } of eventsOf(body)) yield textOfEvent(data);
}

async function* texts(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const [reader, decoder] = [body.getReader(), new TextDecoder()];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield decoder.decode(value, { stream: true });
  }
}
