/** An open stream of server-sent events, read one by one. */
import assert from "node:assert/strict";
import { createClient } from "../src/client/client.ts";
import type { ServerEvent } from "../src/contract/event-stream.ts";
import type { Operation } from "../src/contract/operation.ts";

export interface OpenEvents extends AsyncDisposable {
  /** The next event; null when the server has ended the stream. */
  next(): Promise<ServerEvent | null>;
  /** Reads until an event is of this sort, and returns it. */
  until(name: string): Promise<ServerEvent>;
  close(): Promise<void>;
}

export interface EventsAsked {
  key: string;
  workspace?: string;
  query?: Record<string, string>;
  lastEventId?: string | undefined;
}

export function openEvents(url: string, operation: Operation, asked: EventsAsked): OpenEvents {
  const stop = new AbortController();
  const { key, workspace = "main", query = {}, lastEventId } = asked;
  const events = createClient({ url, apiKey: key, workspace }).events(operation, {
    query,
    signal: stop.signal,
    headers: lastEventId === undefined ? {} : { "last-event-id": lastEventId },
  });
  const next = async () => (await events.next()).value ?? null;
  const close = async (): Promise<void> => {
    stop.abort();
    await events.return().catch(() => {}); // the read that the abort broke
  };
  return {
    next,
    async until(name) {
      for (;;) {
        const event = await next();
        assert.ok(event, `the stream ended before '${name}'`);
        if (event.event === name) return event;
      }
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
