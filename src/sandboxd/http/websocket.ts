/** The server half of a WebSocket, on the raw socket of an upgraded request: messages, pings, closing. */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** Largest message; clients send keystrokes, pasted text and the code of a cell. */
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;
const PING_MS = 30_000;

const TEXT = 0x1;
const BINARY = 0x2;
const CLOSE = 0x8;
const PING = 0x9;
const PONG = 0xa;

export interface WebSocketEvents {
  /** Also takes binary messages where there is no `onBinary`. */
  onText(text: string): void;
  onBinary?(bytes: Buffer): void;
  onClose(): void;
}

/** The subprotocols that the client offers, in its order. */
export const offeredProtocols = (req: IncomingMessage): string[] =>
  (req.headers["sec-websocket-protocol"] ?? "").split(",").map((each) => each.trim());

/** False when the request was refused. `protocol`: one that the client offered. */
export function acceptWebSocket(req: IncomingMessage, socket: Duplex, protocol?: string): boolean {
  const key = req.headers["sec-websocket-key"];
  const fits = req.headers.upgrade?.toLowerCase() === "websocket" && req.headers["sec-websocket-version"] === "13";
  if (!fits || typeof key !== "string" || Buffer.from(key, "base64").byteLength !== 16) {
    socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    return false;
  }
  const accept = createHash("sha1").update(`${key}${GUID}`).digest("base64");
  const chosen = protocol === undefined ? "" : `Sec-WebSocket-Protocol: ${protocol}\r\n`;
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n${chosen}\r\n`,
  );
  return true;
}

export class WebSocketConnection {
  readonly #socket: Duplex;
  readonly #events: WebSocketEvents;
  readonly #pinger: NodeJS.Timeout;
  #pending: Buffer = Buffer.alloc(0);
  /** Frames received so far of a fragmented message. */
  #pieces: Buffer[] = [];
  #piecesBytes = 0;
  #isBinary = false;
  #open = true;

  constructor(socket: Duplex, events: WebSocketEvents) {
    this.#socket = socket;
    this.#events = events;
    this.#pinger = setInterval(() => this.#frame(PING, Buffer.alloc(0)), PING_MS);
    socket.on("close", () => this.#closed());
    socket.on("end", () => this.close(1000));
  }

  /** Begins to read; `head` holds the bytes that arrived together with the request. */
  start(head: Buffer): void {
    if (head.byteLength > 0) this.#push(head);
    this.#socket.on("data", (chunk: Buffer) => this.#push(chunk));
  }

  get open(): boolean {
    return this.#open;
  }

  /** Bytes sent but not yet taken by the client. */
  get waiting(): number {
    return this.#socket.writableLength;
  }

  send(text: string): void {
    this.#frame(TEXT, Buffer.from(text, "utf8"));
  }

  sendBinary(bytes: Buffer): void {
    this.#frame(BINARY, bytes);
  }

  onDrain(then: () => void): void {
    this.#socket.once("drain", then);
  }

  close(code: number): void {
    if (!this.#open) return;
    const payload = Buffer.alloc(2);
    payload.writeUInt16BE(code);
    this.#frame(CLOSE, payload);
    this.#socket.end();
    this.#closed();
  }

  #closed(): void {
    if (!this.#open) return;
    this.#open = false;
    clearInterval(this.#pinger);
    this.#events.onClose();
  }

  #push(chunk: Buffer): void {
    this.#pending = this.#pending.byteLength === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    while (this.#open && this.#take());
  }

  /** Takes one frame from the pending bytes; false when no frame is complete. */
  #take(): boolean {
    const bytes = this.#pending;
    if (bytes.byteLength < 2) return false;
    const first = bytes.readUInt8(0);
    const second = bytes.readUInt8(1);
    const short = second & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    const masked = (second & 0x80) !== 0;
    const reserved = (first & 0x70) !== 0;
    if (!masked || reserved) return this.#protocolError();
    if (bytes.byteLength < 2 + lengthBytes) return false;
    const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
    if (length + this.#piecesBytes > MESSAGE_BYTES_MAX) {
      this.close(1009);
      return false;
    }
    const start = 2 + lengthBytes + 4;
    if (bytes.byteLength < start + length) return false;
    const payload = Buffer.from(bytes.subarray(start, start + length));
    for (let i = 0; i < payload.byteLength; i += 1) {
      payload[i] = (payload[i] ?? 0) ^ (bytes[2 + lengthBytes + (i % 4)] ?? 0);
    }
    this.#pending = bytes.subarray(start + length);
    return this.#handle(first & 0x0f, (first & 0x80) !== 0, payload);
  }

  #handle(opcode: number, final: boolean, payload: Buffer): boolean {
    if (opcode === PING) this.#frame(PONG, payload);
    if (opcode === CLOSE) this.close(1000);
    if (opcode === PING || opcode === PONG || opcode === CLOSE) return this.#open;
    const continues = opcode === 0;
    if (continues !== this.#pieces.length > 0 || opcode > BINARY) return this.#protocolError();
    if (!continues) this.#isBinary = opcode === BINARY;
    this.#pieces.push(payload);
    this.#piecesBytes += payload.byteLength;
    if (!final) return true;
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#piecesBytes = 0;
    if (this.#isBinary && this.#events.onBinary) this.#events.onBinary(bytes);
    else this.#events.onText(bytes.toString("utf8"));
    return this.#open;
  }

  #protocolError(): false {
    this.close(1002);
    return false;
  }

  #frame(opcode: number, payload: Buffer): void {
    if (!this.#open || this.#socket.destroyed) return;
    const length = payload.byteLength;
    const header = Buffer.alloc(length < 126 ? 2 : length < 65536 ? 4 : 10);
    header.writeUInt8(0x80 | opcode, 0);
    header.writeUInt8(length < 126 ? length : length < 65536 ? 126 : 127, 1);
    if (header.byteLength === 4) header.writeUInt16BE(length, 2);
    if (header.byteLength === 10) header.writeBigUInt64BE(BigInt(length), 2);
    this.#socket.write(Buffer.concat([header, payload]));
  }
}
