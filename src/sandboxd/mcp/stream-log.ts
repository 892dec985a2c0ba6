/**
 * Streams of a session that survive the connection they began on: every message has an id and is kept a little, and a
 * client that names the last one it saw gets what came after, and then what comes. A stream that has ended is kept, too,
 * since nobody can tell whether its end has arrived.
 */
import type { ServerResponse } from "node:http";
import type { Message } from "./stdio-child.ts";
import { EventStream } from "./stream.ts";

/** Streams of one session that may be resumed. */
const LOGS_MAX = 64;
/** Messages of one stream, and of all streams of a session, in bytes. */
const EVENTS_MAX = 256;
const BYTES_MAX = 16 * 1024 * 1024;
/** What clients do after a stream ended early, unless they know better. */
const RETRY_MS = 1_000;
/** From this revision on clients understand a message that only has an id. */
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
  /** The newest that was written to somebody. */
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

  /** Whether nothing behind this message has been forgotten. */
  keeps(after: number): boolean {
    return after < this.#next && after >= this.#next - 1 - this.#kept.length;
  }

  /** Continues behind message `after`; without it, behind the last one that anybody was sent. */
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

  /** The oldest that nobody reads go first; the session's own, which is number 0, stays and loses what it kept. */
  #bound(): void {
    for (const log of this.#logs.values()) {
      if (this.#logs.size <= LOGS_MAX && this.#bytes <= BYTES_MAX) return;
      if (log.attached) continue;
      log.forget();
      if (log.id > 0) this.#logs.delete(log.id);
    }
  }
}
