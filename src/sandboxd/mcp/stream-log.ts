/**
 * Streams of a session that survive their connection. Every message has an id and is kept for a while; a client that
 * names the last id it saw gets the messages after it and then new ones. A stream that has ended is kept too, since the
 * server cannot know whether the client received its end.
 */
import type { ServerResponse } from "node:http";
import type { Message } from "./stdio-child.ts";
import { EventStream } from "./stream.ts";

/** Most resumable streams of one session. */
const LOGS_MAX = 64;
/** Most messages kept per stream; BYTES_MAX bounds the bytes of all streams of a session. */
const EVENTS_MAX = 256;
const BYTES_MAX = 16 * 1024 * 1024;
/** Reconnect delay announced to clients (`retry:`). */
const RETRY_MS = 1_000;
/** From this protocol revision on, clients accept an event with an id and no data. */
const PRIMED_SINCE = "2025-11-25";

interface Kept {
  number: number;
  text: string;
}

export class StreamLog {
  readonly id: number;
  readonly #spend: (bytes: number) => void;
  #kept: Kept[] = [];
  #next = 1;
  /** Number of the newest message written to a client. */
  #written = 0;
  #stream: EventStream | null = null;
  #ended = false;

  constructor(id: number, spend: (bytes: number) => void) {
    this.id = id;
    this.#spend = spend;
  }

  get attached(): boolean {
    return this.#stream !== null;
  }

  /** Whether all messages after number `after` are still kept. */
  keeps(after: number): boolean {
    return after < this.#next && after >= this.#next - 1 - this.#kept.length;
  }

  /** Continues after message `after`; by default after the last message written to any client. */
  attach(res: ServerResponse, headers: Record<string, string>, version: string | undefined, after?: number): void {
    this.#stream?.end();
    const stream = new EventStream(res, headers);
    this.#stream = stream;
    res.once("close", () => {
      if (this.#stream === stream) this.#stream = null;
    });
    if (after === undefined && (version ?? "") >= PRIMED_SINCE) stream.prime(`${this.id}.${this.#written}`, RETRY_MS);
    const from = after ?? this.#written;
    for (const kept of this.#kept.filter(({ number }) => number > from)) this.#write(kept);
    if (this.#ended) stream.end();
  }

  add(message: Message): void {
    const kept = { number: this.#next++, text: JSON.stringify(message) };
    this.#kept.push(kept);
    this.#spend(kept.text.length);
    if (this.#kept.length > EVENTS_MAX) this.#spend(-(this.#kept.shift()?.text.length ?? 0));
    this.#write(kept);
  }

  end(): void {
    this.#ended = true;
    this.#stream?.end();
    this.#stream = null;
  }

  forget(): void {
    for (const { text } of this.#kept.splice(0)) this.#spend(-text.length);
  }

  #write({ number, text }: Kept): void {
    if (this.#stream === null) return;
    this.#stream.write(text, `${this.id}.${number}`);
    this.#written = Math.max(this.#written, number);
  }
}

export class StreamLogs {
  readonly #logs = new Map<number, StreamLog>();
  #bytes = 0;
  #nextId = 0;

  make(): StreamLog {
    const log = new StreamLog(this.#nextId++, (bytes) => {
      this.#bytes += bytes;
      if (bytes > 0) this.#bound();
    });
    this.#logs.set(log.id, log);
    this.#bound();
    return log;
  }

  /** The stream that an event id belongs to, and the event's number in it. */
  find(eventId: string): { log: StreamLog; after: number } | null {
    const [, id, after] = /^(\d{1,9})\.(\d{1,9})$/.exec(eventId) ?? [];
    const log = id === undefined ? undefined : this.#logs.get(Number(id));
    return log?.keeps(Number(after)) ? { log, after: Number(after) } : null;
  }

  /** Drops the oldest streams without a reader first. Stream 0, the session's own, stays but loses its messages. */
  #bound(): void {
    for (const log of this.#logs.values()) {
      if (this.#logs.size <= LOGS_MAX && this.#bytes <= BYTES_MAX) return;
      if (log.attached) continue;
      log.forget();
      if (log.id > 0) this.#logs.delete(log.id);
    }
  }
}
