/** One request of the fast lane and its response, without Node's HTTP objects. */
import type { Duplex } from "node:stream";
import { type Downstream, type DownstreamEvents, THIS_MACHINE } from "./downstream.ts";
import { lowerName } from "./http1/header-name.ts";
import type { PlainHead } from "./http1/request-head.ts";

export interface LaneSocket {
  readonly socket: Duplex & { destroySoon(): void };
  readonly remoteAddress: string;
  /** False for a connection from inside a workload. */
  readonly fromNetwork: boolean;
  readonly workload: string | undefined;
  readonly secure: boolean;
  /** Whether another server hands on requests of its clients over this connection. */
  readonly fromServer: boolean;
  readonly accepting: boolean;
  pauseBody(): void;
  resumeBody(): void;
  finished(keepAlive: boolean): void;
}

/** Up to this many bytes, copying is cheaper than a gathered write. */
const COPY_MAX = 16 * 1024;

const NO_TRAILERS: string[] = [];
const CONTENT_LENGTH = "content-length";
const DATE = "date";

export class LaneRequest implements Downstream {
  readonly method: string;
  readonly url: string;
  readonly host: string;
  readonly rawHeaders: readonly string[];
  readonly bodyFraming: "none" | "length";
  readonly contentLength: number;
  readonly expectsContinue = false;
  readonly upgrade = null;
  readonly remoteAddress: string;
  readonly fromNetwork: boolean;
  readonly workload: string | undefined;
  readonly secure: boolean;
  readonly handedOn: boolean;
  readonly #names: readonly string[];
  readonly #lane: LaneSocket;
  #events: DownstreamEvents | null = null;
  #early: Buffer;
  #keepAlive: boolean;
  #headText: string | null = null;
  #chunked = false;
  #bodyless = false;
  #held: Buffer | null = null;
  #over = false;

  /** `early` is the part of the body that came with the head. */
  constructor(lane: LaneSocket, head: PlainHead, early: Buffer) {
    this.#lane = lane;
    this.#names = head.names;
    this.#early = early;
    this.#keepAlive = !head.close;
    this.method = head.method;
    this.url = head.target;
    this.host = head.host;
    this.rawHeaders = head.rawHeaders;
    this.bodyFraming = head.contentLength === null ? "none" : "length";
    this.contentLength = head.contentLength ?? 0;
    const { client } = head;
    this.handedOn = lane.fromServer;
    this.remoteAddress = client === null ? lane.remoteAddress : (client.address ?? THIS_MACHINE);
    this.fromNetwork = client === null ? lane.fromNetwork : client.address !== undefined;
    this.workload = client === null ? lane.workload : client.workload;
    this.secure = client === null ? lane.secure : client.secure;
  }

  get socket(): Duplex {
    return this.#lane.socket;
  }

  header(name: string): string | undefined {
    const at = this.#names.indexOf(name);
    return at < 0 ? undefined : this.rawHeaders[2 * at + 1];
  }

  attach(events: DownstreamEvents): void {
    this.#events = events;
    if (this.#lane.socket.destroyed && !this.#over) process.nextTick(() => this.onGone());
  }

  readBody(): void {
    const early = this.#early;
    const complete = early.length === this.contentLength;
    this.#early = EMPTY;
    if (early.length > 0 || complete) this.onBody(early, complete);
    this.#lane.resumeBody();
  }

  pauseBody(): void {
    this.#lane.pauseBody();
  }

  resumeBody(): void {
    this.#lane.resumeBody();
  }

  /** Clients that send Expect are served by Node, so there is nothing to send. */
  sendContinue(): void {}

  sendInformational(status: number, headers: string[]): void {
    if (this.#headText !== null || (status !== 102 && status !== 103)) return;
    let text = `HTTP/1.1 ${status} ${status === 102 ? "Processing" : "Early Hints"}\r\n`;
    for (let i = 0; i < headers.length; i += 2) {
      if (lowerName(headers[i] as string) === "link") text += `${headers[i]}: ${headers[i + 1]}\r\n`;
    }
    this.#lane.socket.write(`${text}\r\n`, "latin1");
  }

  head(status: number, reason: string, headers: string[]): void {
    let text = `HTTP/1.1 ${status} ${reason}\r\n`;
    let hasLength = false;
    let hasDate = false;
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i] as string;
      if (name.length === CONTENT_LENGTH.length) hasLength ||= lowerName(name) === CONTENT_LENGTH;
      else if (name.length === DATE.length) hasDate ||= lowerName(name) === DATE;
      text += `${name}: ${headers[i + 1]}\r\n`;
    }
    if (!hasDate) text += `Date: ${httpDate()}\r\n`;
    this.#bodyless = this.method === "HEAD" || status === 204 || status === 304;
    if (!hasLength && !this.#bodyless) {
      this.#chunked = true;
      text += "Transfer-Encoding: chunked\r\n";
    }
    this.#keepAlive &&= this.#lane.accepting;
    this.#headText = `${text}Connection: ${this.#keepAlive ? "keep-alive" : "close"}\r\n\r\n`;
  }

  write(chunk: Buffer): boolean {
    if (this.#bodyless) return true;
    if (this.#headText !== null && this.#held === null) {
      this.#held = chunk;
      return true;
    }
    if (this.#headText === null) return this.#send("", chunk, "");
    this.#sendHeld("");
    return this.#send("", chunk, "");
  }

  flush(): boolean {
    if (this.#headText !== null) return this.#sendHeld("");
    return !this.#lane.socket.writableNeedDrain;
  }

  end(trailers: string[]): void {
    this.#over = true;
    let tail = "";
    if (this.#chunked) {
      tail = "0\r\n";
      for (let i = 0; i < trailers.length; i += 2) tail += `${trailers[i]}: ${trailers[i + 1]}\r\n`;
      tail += "\r\n";
    }
    if (this.#headText !== null) this.#sendHeld(tail);
    else if (tail !== "") this.#lane.socket.write(tail, "latin1");
    this.#events = null;
    this.#lane.finished(this.#keepAlive);
  }

  /** Writes the whole answer at once. Field values must be ASCII. */
  answer(status: number, reason: string, headers: readonly string[], body: string): void {
    this.#over = true;
    this.#events = null;
    const { socket, accepting } = this.#lane;
    if (socket.destroyed) return;
    this.#keepAlive &&= accepting;
    let text = `HTTP/1.1 ${status} ${reason}\r\n`;
    for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
    if (status !== 204) text += `content-length: ${Buffer.byteLength(body)}\r\n`;
    text += `Date: ${httpDate()}\r\nConnection: ${this.#keepAlive ? "keep-alive" : "close"}\r\n\r\n`;
    socket.write(text + body, "utf8");
    this.#lane.finished(this.#keepAlive);
  }

  destroy(): void {
    this.#over = true;
    this.#events = null;
    this.#lane.socket.destroy();
  }

  switchProtocols(): never {
    throw new Error("the fast lane serves no upgrades");
  }

  onBody(chunk: Buffer, last: boolean): void {
    if (chunk.length > 0) this.#events?.onRequestBody(chunk);
    if (last) this.#events?.onRequestEnd(NO_TRAILERS);
  }

  onDrain(): void {
    this.#events?.onClientDrain();
  }

  onGone(): void {
    const events = this.#events;
    this.#events = null;
    if (!this.#over) events?.onClientGone();
  }

  #sendHeld(tail: string): boolean {
    const head = this.#headText ?? "";
    const held = this.#held;
    this.#headText = null;
    this.#held = null;
    if (held === null) return this.#lane.socket.write(head + tail, "latin1");
    return this.#send(head, held, tail);
  }

  /** One write for small data, a gathered write otherwise. */
  #send(head: string, chunk: Buffer, tail: string): boolean {
    const { socket } = this.#lane;
    const before = this.#chunked ? `${head}${chunk.length.toString(16)}\r\n` : head;
    const after = this.#chunked ? `\r\n${tail}` : tail;
    if (before === "" && after === "") return socket.write(chunk);
    if (chunk.length <= COPY_MAX) {
      const whole = Buffer.allocUnsafe(before.length + chunk.length + after.length);
      whole.write(before, 0, "latin1");
      chunk.copy(whole, before.length);
      if (after !== "") whole.write(after, before.length + chunk.length, "latin1");
      return socket.write(whole);
    }
    socket.cork();
    socket.write(before, "latin1");
    let takesMore = socket.write(chunk);
    if (after !== "") takesMore = socket.write(after, "latin1");
    socket.uncork();
    return takesMore;
  }
}

const EMPTY = Buffer.alloc(0);

let dateText = "";
let dateSecond = 0;

function httpDate(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateText = new Date(second * 1000).toUTCString();
  }
  return dateText;
}
