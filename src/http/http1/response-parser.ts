/**
 * Reads HTTP/1.1 responses from a workload, which may be hostile. The grammar is strict: CRLF line ends, token names,
 * no control characters, one framing only. Whatever deviates throws ResponseSyntaxError and ends the connection;
 * nothing that was not read as part of a response is ever given to anybody.
 *
 * Modes: idle -> head -> (length | chunk-size -> chunk-data -> chunk-end)* | until-close -> idle, or upgraded.
 * Several informational heads may come before the final one.
 */
import { lowerName, trimField } from "./header-name.ts";

export interface ResponseHead {
  status: number;
  reason: string;
  /** Names and values in turn, as sent. */
  headers: string[];
  /** How the end of the body is found. "upgrade" means the bytes behind the head are no longer HTTP. */
  framing: "none" | "length" | "chunked" | "close" | "upgrade";
  length: number;
  /** False when the workload will close, or must be closed, after this response. */
  keepAlive: boolean;
  /** Seconds from a Keep-Alive header; null when absent. */
  keepAliveSeconds: number | null;
}

export interface ResponseSink {
  onInformational(status: number, headers: string[]): void;
  onHead(head: ResponseHead): void;
  onBody(chunk: Buffer): void;
  onEnd(trailers: string[]): void;
}

export class ResponseSyntaxError extends Error {}

/** Status line and headers. Node's own clients allow 16 KB; workloads that set large cookies need more. */
export const HEAD_BYTES_MAX = 64 * 1024;
/** Headers of a response; each costs memory. */
export const HEADERS_MAX = 1000;
/** Informational responses before the final one; an endless series is an attack. */
const INFORMATIONAL_MAX = 32;
/** Bytes of a chunk's size line. Chunk extensions are allowed and ignored. */
const CHUNK_LINE_MAX = 4096;
const TRAILER_BYTES_MAX = 16 * 1024;

// One anchored pattern without ambiguity: it reads every byte once.
const HEAD =
  /^HTTP\/1\.([01]) ([1-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*))?((?:\r\n[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*)*)$/;
const FIELDS = /^(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;
const CHUNK_LINE = /^([0-9A-Fa-f]{1,13})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/;
const LENGTH = /^[0-9]{1,15}$/;

type Mode =
  | "idle"
  | "head"
  | "length"
  | "chunk-size"
  | "chunk-data"
  | "chunk-end"
  | "trailers"
  | "close"
  | "upgraded"
  | "done";

const NOTHING = Buffer.alloc(0);

export class ResponseParser {
  #mode: Mode = "idle";
  #sink: ResponseSink | null = null;
  #headRequest = false;
  #upgradeRequest = false;
  #informational = 0;
  /** Bytes of a head, chunk line or trailers that is still incomplete. */
  #partial: Buffer = NOTHING;
  #left = 0;
  /** The chunks of one read are passed on together, so that single-byte chunks do not cost a write each. */
  #pieces: Buffer[] = [];

  get idle(): boolean {
    return this.#mode === "idle";
  }

  get upgraded(): boolean {
    return this.#mode === "upgraded";
  }

  /** True once any byte of the response has arrived; from then on the request is never sent again. */
  get started(): boolean {
    return this.#mode !== "head" || this.#partial.length > 0 || this.#informational > 0;
  }

  expect(sink: ResponseSink, request: { method: string; upgrade: boolean }): void {
    this.#sink = sink;
    this.#mode = "head";
    this.#headRequest = request.method === "HEAD";
    this.#upgradeRequest = request.upgrade;
    this.#informational = 0;
  }

  /** Stops reading the response; later bytes are ignored. */
  stop(): void {
    this.#mode = "done";
    this.#sink = null;
    this.#partial = NOTHING;
    this.#pieces = [];
  }

  /** Returns the bytes behind the end of the response; empty while the response continues. */
  push(chunk: Buffer): Buffer {
    let data = chunk;
    while (data.length > 0) {
      switch (this.#mode) {
        case "idle":
        case "upgraded":
        case "done":
          return data;
        case "head":
          data = this.#readHead(data);
          break;
        case "length":
          data = this.#readLength(data);
          break;
        case "chunk-size":
          data = this.#readChunkSize(data);
          break;
        case "chunk-data":
          data = this.#readChunkData(data);
          break;
        case "chunk-end":
          data = this.#readChunkEnd(data);
          break;
        case "trailers":
          data = this.#readTrailers(data);
          break;
        case "close":
          this.#sink?.onBody(data);
          return NOTHING;
      }
    }
    if (this.#pieces.length > 0) this.#flush();
    return data;
  }

  /** The workload closed the connection. True when that is a valid end of the response. */
  end(): boolean {
    if (this.#mode !== "close") return false;
    this.#finish([]);
    return true;
  }

  #readHead(chunk: Buffer): Buffer {
    const searchFrom = Math.max(0, this.#partial.length - 3);
    const data = this.#partial.length === 0 ? chunk : Buffer.concat([this.#partial, chunk]);
    const end = data.indexOf("\r\n\r\n", searchFrom, "latin1");
    if (end < 0 ? data.length > HEAD_BYTES_MAX : end > HEAD_BYTES_MAX) throw new ResponseSyntaxError("head too large");
    if (end < 0) {
      if (!looksLikeHttp(data)) throw new ResponseSyntaxError("not an HTTP response");
      this.#partial = data;
      return NOTHING;
    }
    this.#partial = NOTHING;
    const head = parseHead(data.toString("latin1", 0, end), this.#headRequest, this.#upgradeRequest);
    const rest = data.subarray(end + 4);
    if (head.status < 200 && head.framing !== "upgrade") {
      this.#informational += 1;
      if (this.#informational > INFORMATIONAL_MAX) throw new ResponseSyntaxError("too many informational responses");
      this.#sink?.onInformational(head.status, head.headers);
      return rest;
    }
    this.#left = head.length;
    this.#mode = MODE_OF[head.framing];
    this.#sink?.onHead(head);
    if (head.framing === "upgrade") return rest;
    if (this.#mode === "length" && this.#left === 0) this.#finish([]);
    return rest;
  }

  #readLength(data: Buffer): Buffer {
    if (data.length < this.#left) {
      this.#left -= data.length;
      this.#sink?.onBody(data);
      return NOTHING;
    }
    const body = data.length === this.#left ? data : data.subarray(0, this.#left);
    this.#left = 0;
    this.#sink?.onBody(body);
    if (this.#mode === "length") this.#finish([]);
    return data.subarray(body.length);
  }

  #readChunkSize(chunk: Buffer): Buffer {
    const data = this.#partial.length === 0 ? chunk : Buffer.concat([this.#partial, chunk]);
    const end = data.indexOf("\r\n", 0, "latin1");
    if (end < 0 ? data.length > CHUNK_LINE_MAX : end > CHUNK_LINE_MAX) {
      throw new ResponseSyntaxError("chunk line too long");
    }
    if (end < 0) {
      this.#partial = data;
      return NOTHING;
    }
    this.#partial = NOTHING;
    const line = CHUNK_LINE.exec(data.toString("latin1", 0, end));
    if (!line?.[1]) throw new ResponseSyntaxError("bad chunk size");
    this.#left = Number.parseInt(line[1], 16);
    this.#mode = this.#left === 0 ? "trailers" : "chunk-data";
    return data.subarray(end + 2);
  }

  #readChunkData(data: Buffer): Buffer {
    const body = data.length <= this.#left ? data : data.subarray(0, this.#left);
    this.#left -= body.length;
    if (this.#left === 0) this.#mode = "chunk-end";
    this.#pieces.push(body);
    return data.subarray(body.length);
  }

  #readChunkEnd(chunk: Buffer): Buffer {
    const data = this.#partial.length === 0 ? chunk : Buffer.concat([this.#partial, chunk]);
    if (data[0] !== 13 || (data.length > 1 && data[1] !== 10)) throw new ResponseSyntaxError("bad end of chunk");
    if (data.length === 1) {
      this.#partial = data;
      return NOTHING;
    }
    this.#partial = NOTHING;
    this.#mode = "chunk-size";
    return data.subarray(2);
  }

  #readTrailers(chunk: Buffer): Buffer {
    const data = this.#partial.length === 0 ? chunk : Buffer.concat([this.#partial, chunk]);
    const none = data[0] === 13 && data[1] === 10;
    const end = none ? -2 : data.indexOf("\r\n\r\n", 0, "latin1");
    if (end === -1) {
      if (data.length > TRAILER_BYTES_MAX) throw new ResponseSyntaxError("trailers too large");
      this.#partial = data;
      return NOTHING;
    }
    this.#partial = NOTHING;
    const text = none ? "" : data.toString("latin1", 0, end + 2);
    if (text.length > TRAILER_BYTES_MAX || !FIELDS.test(text)) throw new ResponseSyntaxError("bad trailers");
    this.#finish(splitFields(text, 0));
    return data.subarray(end + 4);
  }

  #flush(): void {
    const [first] = this.#pieces;
    const body = this.#pieces.length === 1 && first ? first : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#sink?.onBody(body);
  }

  #finish(trailers: string[]): void {
    if (this.#pieces.length > 0) this.#flush();
    const sink = this.#sink;
    this.#mode = "idle";
    this.#sink = null;
    sink?.onEnd(trailers);
  }
}

const MODE_OF = {
  none: "length",
  length: "length",
  chunked: "chunk-size",
  close: "close",
  upgrade: "upgraded",
} as const satisfies Record<ResponseHead["framing"], Mode>;

/** Detects another protocol at its first bytes, instead of waiting for a head that never comes. */
function looksLikeHttp(data: Buffer): boolean {
  const start = "HTTP/1.";
  return data.toString("latin1", 0, start.length) === start.slice(0, data.length);
}

function parseHead(text: string, headRequest: boolean, upgradeRequest: boolean): ResponseHead {
  const match = HEAD.exec(text);
  if (!match) throw new ResponseSyntaxError("bad status line or header");
  const status = Number(match[2]);
  const fields = match[4] ?? "";
  // In `fields` each field starts with CRLF; splitFields expects each to end with one.
  const headers = fields === "" ? [] : splitFields(`${fields}\r\n`, 2);
  const head: ResponseHead = {
    status,
    reason: match[3] ?? "",
    headers,
    framing: "close",
    length: 0,
    keepAlive: match[1] === "1",
    keepAliveSeconds: null,
  };
  const { length, chunked } = readFraming(head, match[1] === "1");
  if (status === 101) {
    if (!upgradeRequest) throw new ResponseSyntaxError("switched protocols without being asked");
    head.framing = "upgrade";
  } else if (headRequest || status < 200 || status === 204 || status === 304) head.framing = "none";
  else if (chunked) head.framing = "chunked";
  else if (length !== null) {
    head.framing = "length";
    head.length = length;
  } else head.keepAlive = false;
  return head;
}

/** Lengths of the framing names: most fields are skipped by comparing lengths only. */
const FRAMING_LENGTHS = new Set(
  ["content-length", "transfer-encoding", "connection", "keep-alive"].map(({ length }) => length),
);

function readFraming(head: ResponseHead, isVersion11: boolean): { length: number | null; chunked: boolean } {
  let length: number | null = null;
  let chunked = false;
  const { headers } = head;
  for (let i = 0; i < headers.length; i += 2) {
    const spelled = headers[i] as string;
    if (!FRAMING_LENGTHS.has(spelled.length)) continue;
    const value = headers[i + 1] as string;
    switch (lowerName(spelled)) {
      case "content-length": {
        if (!LENGTH.test(value)) throw new ResponseSyntaxError("bad content-length");
        if (length !== null && length !== Number(value)) throw new ResponseSyntaxError("two content-lengths");
        length = Number(value);
        break;
      }
      case "transfer-encoding":
        if (chunked || !isVersion11 || value.toLowerCase() !== "chunked") {
          throw new ResponseSyntaxError("unsupported transfer-encoding");
        }
        chunked = true;
        break;
      case "connection":
        if (/(?:^|,)\s*close\s*(?:,|$)/i.test(value)) head.keepAlive = false;
        break;
      case "keep-alive": {
        const seconds = /(?:^|[,;\s])timeout=([0-9]{1,6})/i.exec(value)?.[1];
        if (seconds !== undefined) head.keepAliveSeconds = Number(seconds);
        break;
      }
    }
  }
  // Two framings at once is the classic way to make two readers disagree about where a response ends.
  if (chunked && length !== null) throw new ResponseSyntaxError("content-length and transfer-encoding");
  return { length, chunked };
}

/** `text` holds checked fields, each ended by CRLF. */
function splitFields(text: string, from: number): string[] {
  const headers: string[] = [];
  for (let start = from; start < text.length; ) {
    const end = text.indexOf("\r\n", start);
    const colon = text.indexOf(":", start);
    if (headers.length >= 2 * HEADERS_MAX) throw new ResponseSyntaxError("too many headers");
    headers.push(text.slice(start, colon), trimField(text, colon + 1, end));
    start = end + 2;
  }
  return headers;
}
