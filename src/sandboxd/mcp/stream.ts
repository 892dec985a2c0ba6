/** Ways to answer an MCP client over HTTP: one JSON object, or a stream of server-sent events that ends with it. */

import type { ServerResponse } from "node:http";
import { sendJson } from "../http/send.ts";
import type { Message } from "./stdio-child.ts";

/** Clients give up when no headers come for a few minutes, and proxies when no byte comes. */
const KEEP_ALIVE_MS = 15_000;
/** A client with this many unread bytes is taken for gone. */
const UNREAD_BYTES_MAX = 32 * 1024 * 1024;

/** A stream of messages from the server. */
export class EventStream {
  readonly #res: ServerResponse;
  readonly #timer: NodeJS.Timeout;

  constructor(res: ServerResponse, headers: Record<string, string>) {
    this.#res = res;
    res.writeHead(200, { ...headers, "Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform" });
    res.flushHeaders();
    this.#timer = setInterval(() => res.write(": still here\n\n"), KEEP_ALIVE_MS);
    res.once("close", () => clearInterval(this.#timer));
  }

  send(message: Message): void {
    this.write(JSON.stringify(message));
  }

  write(text: string, id?: string): void {
    if (this.#res.writableLength > UNREAD_BYTES_MAX) this.#res.destroy();
    else this.#res.write(`event: message\n${id === undefined ? "" : `id: ${id}\n`}data: ${text}\n\n`);
  }

  /** Gives the client an id to resume from before there is a message. */
  prime(id: string, retryMs: number): void {
    this.#res.write(`id: ${id}\nretry: ${retryMs}\ndata: \n\n`);
  }

  end(): void {
    clearInterval(this.#timer);
    this.#res.end();
  }
}

/** Carries the messages before an answer, and then the answer. */
interface Carrier {
  add(message: Message): void;
  end(): void;
}

/**
 * The answer to one request: a JSON object, or a stream when messages come before it or it takes longer than
 * KEEP_ALIVE_MS.
 */
export class PostAnswer {
  readonly #res: ServerResponse;
  readonly #options: PostOptions;
  readonly #timer: NodeJS.Timeout;
  #carrier: Carrier | null = null;

  constructor(res: ServerResponse, options: PostOptions) {
    this.#res = res;
    this.#options = options;
    this.#timer = setTimeout(() => this.#open(), KEEP_ALIVE_MS);
    res.once("close", () => clearTimeout(this.#timer));
  }

  /** False when the client has left. */
  get awaited(): boolean {
    return !this.#res.closed;
  }

  /** True when the client will get the message, now or by resuming. */
  say(message: Message): boolean {
    const carrier = this.#open();
    carrier?.add(message);
    return carrier !== null;
  }

  finish(message: Message, status = 200): void {
    clearTimeout(this.#timer);
    if (this.#carrier) {
      this.#carrier.add(message);
      this.#carrier.end();
      return;
    }
    if (this.#res.closed) return;
    for (const [name, value] of Object.entries(this.#options.headers ?? {})) this.#res.setHeader(name, value);
    sendJson(this.#res, status, message);
  }

  #open(): Carrier | null {
    if (this.#carrier !== null) return this.#carrier;
    if (!this.#options.takesStream || this.#res.closed) return null;
    this.#carrier = (this.#options.open ?? plainStream)(this.#res, this.#options.headers ?? {});
    return this.#carrier;
  }
}

interface PostOptions {
  headers?: Record<string, string>;
  takesStream: boolean;
  /** Opens the stream. Default: a stream that ends with its connection. */
  open?(res: ServerResponse, headers: Record<string, string>): Carrier;
}

function plainStream(res: ServerResponse, headers: Record<string, string>): Carrier {
  const stream = new EventStream(res, headers);
  return { add: (message) => stream.send(message), end: () => stream.end() };
}
