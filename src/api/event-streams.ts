/**
 * Open answers of server-sent events. Each one ends with the rights that opened it: they are checked again when any
 * identity changes, at every heartbeat, and before a burst of events is written. The number of open streams is bounded
 * for each caller and in all, and so is what lies unread in memory for a client.
 */
import type { ServerResponse } from "node:http";
import { PlatformError } from "../contract/errors.ts";
import type { EventStream, ServerEvent } from "../contract/event-stream.ts";
import { cutWhenStalled } from "../http/stalled.ts";
import type { Running } from "../lib/lifecycle.ts";
import { SECOND_MS } from "../lib/time/clock.ts";

/** Open streams of one caller: a browser with many windows, and some programs. */
const OF_CALLER_MAX = 32;
const IN_ALL_MAX = 4000;
/** Proxies close a connection on which nothing comes for 30 to 60 seconds. */
const HEARTBEAT_MS = 15 * SECOND_MS;
/** Unread bytes from which a stream holds its events back. */
const UNREAD_MAX = 64 * 1024;

export interface OpenedStream {
  stream: EventStream;
  /** Who reads, for the bound on open streams. */
  reader: string;
  /** Rejects when the credentials no longer give the rights that opened the stream. */
  stillAllowed(): Promise<void>;
}

export interface EventStreamsOptions {
  onIdentityChange(listener: () => void): () => void;
  heartbeatMs?: number;
}

export class EventStreams implements Running {
  readonly #open = new Map<string, Set<Connection>>();
  readonly #unsubscribe: () => void;
  readonly #heartbeat: NodeJS.Timeout;
  #count = 0;
  #isStopped = false;

  constructor({ onIdentityChange, heartbeatMs = HEARTBEAT_MS }: EventStreamsOptions) {
    this.#unsubscribe = onIdentityChange(() => this.#each((one) => void one.check()));
    this.#heartbeat = setInterval(() => this.#each((one) => void one.beat()), heartbeatMs).unref();
  }

  get count(): number {
    return this.#count;
  }

  /** Writes the head of the answer and begins the stream. The caller has hijacked the response. */
  serve(response: ServerResponse, headers: Record<string, string>, opened: OpenedStream): void {
    const mine = this.#open.get(opened.reader) ?? new Set();
    this.#open.set(opened.reader, mine);
    const connection = new Connection(response, opened, () => {
      mine.delete(connection);
      this.#count -= 1;
      if (mine.size === 0 && this.#open.get(opened.reader) === mine) this.#open.delete(opened.reader);
    });
    mine.add(connection);
    this.#count += 1;
    connection.begin(headers);
  }

  requireRoom(reader: string): void {
    if (this.#isStopped) throw new PlatformError("unavailable", "The server stops. Connect again.");
    const mine = this.#open.get(reader)?.size ?? 0;
    if (mine < OF_CALLER_MAX && this.#count < IN_ALL_MAX) return;
    const message =
      mine < OF_CALLER_MAX
        ? "This server has too many open event streams. Try again later."
        : `You have ${OF_CALLER_MAX} open event streams. Close one first.`;
    throw new PlatformError("too_many_requests", message, { headers: { "retry-after": "5" } });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#heartbeat);
    this.#unsubscribe();
    this.#each((one) => one.end("The server stops. Connect again."));
  }

  #each(act: (connection: Connection) => void): void {
    for (const mine of [...this.#open.values()]) for (const connection of [...mine]) act(connection);
  }
}

const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  // nginx holds answers back otherwise.
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff",
};

class Connection {
  readonly #response: ServerResponse;
  readonly #opened: OpenedStream;
  readonly #closed: () => void;
  #running: ReturnType<EventStream["start"]> | null = null;
  #isOver = false;
  /** Events that wait for the check of the rights. */
  #waiting: string[] = [];
  #checking: Promise<void> | null = null;

  constructor(response: ServerResponse, opened: OpenedStream, closed: () => void) {
    this.#response = response;
    this.#opened = opened;
    this.#closed = closed;
  }

  begin(headers: Record<string, string>): void {
    const response = this.#response;
    response.on("close", () => this.#over());
    response.on("error", () => this.#over());
    response.on("drain", () => this.#running?.onDrain());
    response.writeHead(200, { ...headers, ...HEADERS });
    response.flushHeaders();
    if (this.#isOver) return;
    this.#running = this.#opened.stream.start({
      send: (event) => this.#send(event),
      hasRoom: () => response.writableLength + this.#waitingLength() < UNREAD_MAX,
      end: (message) => this.end(message),
    });
    if (this.#isOver) this.#running.stop();
  }

  async beat(): Promise<void> {
    await this.check();
    if (!this.#isOver && this.#response.writableLength < UNREAD_MAX) this.#write(": still here\n\n");
  }

  /** Ends the stream when its credentials no longer give the right to it. */
  async check(): Promise<void> {
    try {
      await this.#opened.stillAllowed();
    } catch (error) {
      this.#waiting = [];
      this.end(error instanceof PlatformError ? error.message : "The credentials could not be checked. Connect again.");
    }
  }

  end(message: string): void {
    if (this.#isOver) return;
    this.#write(frameOf({ event: "end", data: { message } }));
    this.#response.end();
    this.#over();
  }

  #send(event: ServerEvent): void {
    if (this.#isOver) return;
    this.#waiting.push(frameOf(event));
    this.#checking ??= this.check().then(() => {
      this.#checking = null;
      const frames = this.#waiting;
      this.#waiting = [];
      if (!this.#isOver && frames.length > 0) this.#write(frames.join(""));
      if (!this.#isOver && this.#response.writableLength < UNREAD_MAX) this.#running?.onDrain();
    });
  }

  #waitingLength(): number {
    return this.#waiting.reduce((sum, { length }) => sum + length, 0);
  }

  #write(text: string): void {
    this.#response.write(text);
    const { socket } = this.#response;
    if (socket) cutWhenStalled(socket);
  }

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#waiting = [];
    this.#running?.stop();
    this.#closed();
  }
}

/** JSON has no line breaks, so the data is one line. */
const frameOf = ({ event, data, id }: ServerEvent): string =>
  `${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
