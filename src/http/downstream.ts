/**
 * The client's side of an exchange. `NodeDownstream` implements it for Node's HTTP/1.1 and HTTP/2 servers; other
 * servers implement the same interface.
 */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { Duplex } from "node:stream";
import { type Client, clientOf, isFromServer } from "./peer-field.ts";
import { cutWhenStalled } from "./stalled.ts";

export interface DownstreamEvents {
  onRequestBody(chunk: Buffer): void;
  onRequestEnd(trailers: string[]): void;
  /** The client can take more of the response. */
  onClientDrain(): void;
  /** The client disconnected before the response was complete. */
  onClientGone(): void;
}

export interface Downstream {
  readonly method: string;
  /** The raw request target. */
  readonly url: string;
  readonly host: string | undefined;
  readonly rawHeaders: readonly string[];
  /** The first value of a field, by lower-case name. */
  header(name: string): string | undefined;
  readonly bodyFraming: "none" | "length" | "chunked";
  readonly contentLength: number;
  readonly expectsContinue: boolean;
  readonly remoteAddress: string;
  /** False for a connection from inside a workload; its `remoteAddress` is this machine's. */
  readonly fromNetwork: boolean;
  /** The uid of the workload that the client is in; undefined for a client from the network. */
  readonly workload: string | undefined;
  readonly secure: boolean;
  /** Whether another server took this request and handed it on; such a request is not handed on again. */
  readonly handedOn: boolean;
  /** Protocol the client wants to switch to; null for an ordinary request. */
  readonly upgrade: string | null;

  /** Starts the events; the body is not read before readBody. */
  attach(events: DownstreamEvents): void;
  readBody(): void;
  pauseBody(): void;
  resumeBody(): void;

  sendContinue(): void;
  sendInformational(status: number, headers: string[]): void;
  head(status: number, reason: string, headers: string[]): void;
  /** False = backpressure: wait for onClientDrain. */
  write(chunk: Buffer): boolean;
  /** Writes out what is buffered, when no more data is expected soon. False = backpressure. */
  flush(): boolean;
  end(trailers: string[]): void;
  /** Closes the connection, so that the client cannot take a broken response for a complete one. */
  destroy(): void;
  /** Tells the client that the protocol is switched and hands over the raw connection; `early` are bytes behind the request's head. */
  switchProtocols(switching: Switching): { socket: Duplex; early: Buffer };
}

/** The workload's answer to an upgrade. */
export interface Switching {
  reason: string;
  protocol: string;
  /** Without hop-by-hop fields. */
  headers: string[];
}

/**
 * When a request is answered early, the gateway reads and discards up to this many more bytes, for this long, before it
 * closes: a client that is cut off while sending would never read the answer.
 */
export const LINGER_BYTES_MAX = 64 * 1024 * 1024;
export const LINGER_MS = 5000;

/** The address of clients inside workloads, which have none. */
export const THIS_MACHINE = "127.0.0.1";

const NO_TRAILERS: string[] = [];

export interface NodeDownstreamOptions {
  /** The request came by the server's checkContinue event. */
  continueExpected?: boolean;
  /** The request came by the server's upgrade event, with these bytes behind its head. */
  upgradeHead?: Buffer;
  /** False once the server is closing: connections end with their current response. */
  accepting?: () => boolean;
  /** Header fields beside the client's, names and values alternating. */
  added?: readonly string[];
}

export class NodeDownstream implements Downstream {
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #upgradeHead: Buffer | null;
  readonly #accepting: () => boolean;
  readonly #http2: boolean;
  readonly #client: Client;
  readonly rawHeaders: readonly string[];
  readonly expectsContinue: boolean;
  #events: DownstreamEvents | null = null;
  #reading = false;
  #continued = false;
  #closing = false;
  #ended = false;
  /** The first chunk of the body waits for the next chunk or the end, so that a small response is one write. */
  #held: Buffer | null = null;
  #headSent = false;
  #lingered = 0;

  constructor(req: IncomingMessage, res: ServerResponse, options: NodeDownstreamOptions = {}) {
    this.#req = req;
    this.#res = res;
    this.#http2 = req.httpVersionMajor === 2;
    this.#client = clientOf(req);
    this.#upgradeHead = options.upgradeHead ?? null;
    this.#accepting = options.accepting ?? always;
    this.expectsContinue = options.continueExpected ?? false;
    this.rawHeaders = this.#http2 ? [...joinCookies(req.rawHeaders), ...(options.added ?? [])] : req.rawHeaders;
    res.on("close", this.#onClose);
    // A vanished client is reported by "close"; the write error adds nothing.
    res.on("error", ignore);
  }

  /** The part of the connection that belongs to this request alone. */
  get #connection(): Duplex {
    return streamOf(this.#req) ?? this.#req.socket;
  }

  get method(): string {
    return this.#req.method ?? "GET";
  }

  get url(): string {
    return this.#req.url ?? "/";
  }

  get host(): string | undefined {
    const authority = this.#req.headers[":authority"];
    return this.#req.headers.host ?? (typeof authority === "string" ? authority : undefined);
  }

  header(name: string): string | undefined {
    const value = this.#req.headers[name];
    return typeof value === "string" ? value : value?.[0];
  }

  get bodyFraming(): "none" | "length" | "chunked" {
    const { headers } = this.#req;
    if (headers["transfer-encoding"] !== undefined) return "chunked";
    if (headers["content-length"] !== undefined) return "length";
    return this.#http2 && !this.#req.readableEnded && !isEndOfStream(this.#req) ? "chunked" : "none";
  }

  get contentLength(): number {
    return Number(this.#req.headers["content-length"] ?? 0);
  }

  get remoteAddress(): string {
    return this.#client.address ?? THIS_MACHINE;
  }

  get fromNetwork(): boolean {
    return this.#client.address !== undefined;
  }

  get workload(): string | undefined {
    return this.#client.workload;
  }

  get secure(): boolean {
    return this.#client.secure;
  }

  get handedOn(): boolean {
    return isFromServer(this.#req.socket);
  }

  get upgrade(): string | null {
    return this.#upgradeHead === null ? null : (this.#req.headers.upgrade ?? null);
  }

  attach(events: DownstreamEvents): void {
    this.#events = events;
    if (this.#res.destroyed) process.nextTick(this.#onClose);
  }

  readBody(): void {
    if (this.#reading) return;
    this.#reading = true;
    this.#req.on("data", this.#onData);
    this.#req.on("end", this.#onEnd);
  }

  pauseBody(): void {
    this.#req.pause();
  }

  resumeBody(): void {
    if (this.#reading && this.#req.isPaused()) this.#req.resume();
  }

  sendContinue(): void {
    if (this.expectsContinue && !this.#continued && !this.#headSent) this.#res.writeContinue();
    this.#continued = true;
  }

  sendInformational(status: number, headers: string[]): void {
    if (this.#req.httpVersion === "1.0" || this.#headSent) return;
    if (status === 102) this.#res.writeProcessing();
    if (status !== 103) return;
    try {
      this.#res.writeEarlyHints(toObject(linksOf(headers)) as Record<string, string | string[]>);
    } catch {
      // Early hints are advice. Links that Node does not accept are left out; the final response has them again.
    }
  }

  head(status: number, reason: string, headers: string[]): void {
    // After a final response instead of 100, the client may or may not send the body. The gateway cannot know, so it
    // closes the connection.
    this.#closing = (this.expectsContinue && !this.#continued) || !this.#accepting();
    if (this.#http2) this.#res.writeHead(status, toObject(headers));
    else this.#res.writeHead(status, reason, this.#closing ? [...headers, "Connection", "close"] : headers);
  }

  write(chunk: Buffer): boolean {
    if (!this.#headSent && this.#held === null) {
      this.#held = chunk;
      return true;
    }
    this.#releaseHeld();
    return this.#write(chunk);
  }

  flush(): boolean {
    if (this.#held !== null) return this.#releaseHeld();
    if (!this.#headSent && this.#res.headersSent) {
      this.#headSent = true;
      this.#res.flushHeaders();
    }
    return !this.#res.writableNeedDrain;
  }

  end(trailers: string[]): void {
    this.#ended = true;
    if (trailers.length > 0 && !this.#http2) this.#res.addTrailers(pairs(trailers));
    if (this.#held === null) this.#res.end();
    else this.#res.end(this.#held);
    this.#held = null;
    this.#headSent = true;
    cutWhenStalled(this.#connection);
    if (!this.#req.complete && this.bodyFraming !== "none") this.#linger();
  }

  destroy(): void {
    this.#ended = true;
    this.#req.destroy();
    this.#res.destroy();
  }

  switchProtocols(switching: Switching): { socket: Duplex; early: Buffer } {
    const { socket } = this.#req;
    this.#ended = true;
    this.#res.detachSocket(socket);
    socket.write(switchHead(switching), "latin1");
    return { socket, early: this.#upgradeHead ?? Buffer.alloc(0) };
  }

  /** From now on a close of the connection is not reported. */
  protected markEnded(): void {
    this.#ended = true;
  }

  #releaseHeld(): boolean {
    const held = this.#held;
    this.#held = null;
    return held === null || this.#write(held);
  }

  #write(chunk: Buffer): boolean {
    this.#headSent = true;
    const takesMore = this.#res.write(chunk);
    if (!takesMore) this.#res.once("drain", this.#onDrain);
    return takesMore;
  }

  /** Keeps reading for a short time: a client that is cut off while sending may never read the response. */
  #linger(): void {
    this.#events = null;
    if (this.#closing) return; // Node closes the connection after the response
    this.readBody();
    this.resumeBody();
    const timer = setTimeout(() => this.#connection.destroy(), LINGER_MS);
    timer.unref();
    this.#req.once("close", () => clearTimeout(timer));
  }

  #onData = (chunk: Buffer): void => {
    if (!this.#ended) {
      this.#events?.onRequestBody(chunk);
      return;
    }
    this.#lingered += chunk.length;
    if (this.#lingered > LINGER_BYTES_MAX) this.#connection.destroy();
  };

  #onEnd = (): void => {
    const { rawTrailers } = this.#req;
    this.#events?.onRequestEnd(rawTrailers.length === 0 ? NO_TRAILERS : rawTrailers);
  };

  #onDrain = (): void => {
    this.#events?.onClientDrain();
  };

  #onClose = (): void => {
    const events = this.#events;
    this.#events = null;
    if (!this.#ended) events?.onClientGone();
  };
}

/** Upgrade and Connection are hop-by-hop headers, so the gateway writes its own. */
function switchHead({ reason, protocol, headers }: Switching): string {
  let text = `HTTP/1.1 101 ${reason === "" ? "Switching Protocols" : reason}\r\n`;
  for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${text}Upgrade: ${protocol}\r\nConnection: Upgrade\r\n\r\n`;
}

const ignore = (): void => {};
const always = (): boolean => true;

/** HTTP/2 may send one cookie per field; HTTP/1.1 wants them in one. */
function joinCookies(rawHeaders: readonly string[]): string[] {
  const out: string[] = [];
  const cookies: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i] === "cookie") cookies.push(rawHeaders[i + 1] as string);
    else out.push(rawHeaders[i] as string, rawHeaders[i + 1] as string);
  }
  if (cookies.length > 0) out.push("cookie", cookies.join("; "));
  return out;
}

/** The stream of a request of HTTP/2. */
function streamOf(req: IncomingMessage): Duplex | null {
  const stream: unknown = "stream" in req ? req.stream : null;
  return stream instanceof Duplex ? stream : null;
}

function isEndOfStream(req: IncomingMessage): boolean {
  const stream = streamOf(req);
  return stream !== null && "endAfterHeaders" in stream && stream.endAfterHeaders === true;
}

/** Only links pass: other fields of early hints, such as cookies, would bypass the header rules. */
function linksOf(headers: readonly string[]): string[] {
  return pairs(headers)
    .filter(([name]) => name.toLowerCase() === "link")
    .flat();
}

function pairs(flat: readonly string[]): [string, string][] {
  const out: [string, string][] = [];
  for (let i = 0; i < flat.length; i += 2) out.push([flat[i] as string, flat[i + 1] as string]);
  return out;
}

/** Fields as Node takes them for HTTP/2: names in lower case. */
export function toObject(flat: readonly string[]): OutgoingHttpHeaders {
  const out: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of pairs(flat)) {
    const key = name.toLowerCase();
    const before = out[key];
    if (before === undefined) out[key] = value;
    else if (Array.isArray(before)) before.push(value);
    else out[key] = [before, value];
  }
  return out;
}
