/** Ways to answer an MCP client over HTTP: one JSON object, or a stream of server-sent events that ends with it. */
import type { ServerResponse } from "node:http";
import { sendJson } from "./http-call.ts";
import type { Message } from "./stdio-child.ts";

/** Clients give up when no head comes for a few minutes, and so do proxies when no byte does. */
const KEEP_ALIVE_MS = 15_000;
/** A client that reads so little has gone away without saying so. */
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
    if (this.#res.writableLength > UNREAD_BYTES_MAX) this.#res.destroy();
    else this.#res.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
  }

  end(): void {
    clearInterval(this.#timer);
    this.#res.end();
  }
}

/** The answer to one request: a plain object, unless something has to be said before, or it takes long. */
export class PostAnswer {
  readonly #res: ServerResponse;
  readonly #headers: Record<string, string>;
  readonly #takesStream: boolean;
  readonly #timer: NodeJS.Timeout;
  #stream: EventStream | null = null;

  constructor(res: ServerResponse, options: { headers?: Record<string, string>; takesStream: boolean }) {
    this.#res = res;
    this.#headers = options.headers ?? {};
    this.#takesStream = options.takesStream;
    this.#timer = setTimeout(() => this.#open(), KEEP_ALIVE_MS);
    res.once("close", () => clearTimeout(this.#timer));
  }

  /** False when the client has left. */
  get awaited(): boolean {
    return !this.#res.closed;
  }

  /** True when the client will get it. */
  say(message: Message): boolean {
    const stream = this.#open();
    stream?.send(message);
    return stream !== null;
  }

  finish(message: Message, status = 200): void {
    clearTimeout(this.#timer);
    if (this.#res.closed) return;
    if (this.#stream) {
      this.#stream.send(message);
      this.#stream.end();
      return;
    }
    for (const [name, value] of Object.entries(this.#headers)) this.#res.setHeader(name, value);
    sendJson(this.#res, status, message);
  }

  #open(): EventStream | null {
    if (!this.#takesStream || this.#res.closed) return null;
    this.#stream ??= new EventStream(this.#res, this.#headers);
    return this.#stream;
  }
}
