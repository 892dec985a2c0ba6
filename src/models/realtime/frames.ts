/** Frames of a WebSocket (RFC 6455) as a server sends them: read, and made. */

const CONTINUATION = 0x0;
const TEXT = 0x1;
const CLOSE = 0x8;
const FINAL = 0x80;
const MASKED = 0x80;
const RESERVED = 0x70;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
/** Bytes of the longest head of a frame without a mask. */
const HEAD_MAX = 10;
/** A message that is longer passes unread. Events that tell usage are far shorter, because they carry no audio. */
const READ_MAX_BYTES = 1024 * 1024;

const EMPTY = Buffer.alloc(0);

/** The server sent what no client would accept. */
export class FrameError extends Error {}

/** A part of the stream. */
export interface Piece {
  bytes: Buffer;
  /** The text message that ends with these bytes; null for other parts. */
  text: Buffer | null;
}

/** Cuts a server's bytes behind every text message, so that whoever passes them on can stop there. */
export class FrameReader {
  #head: number[] = [];
  /** Of the payload of the frame that is being read. */
  #left = 0;
  #inPayload = false;
  #opcode = 0;
  #isFinal = false;
  /** Begins with the payload of the message so far, in one piece: a server may send one byte at a time. */
  #message: Buffer | null = null; // null while it is too long to keep, or no text
  #keptBytes = 0;
  /** As the heads of its frames say. */
  #messageBytes = 0;

  push(chunk: Buffer): Piece[] {
    const pieces: Piece[] = [];
    let cut = 0;
    for (let at = 0; at < chunk.length; ) {
      at = this.#inPayload ? this.#takePayload(chunk, at) : this.#takeHead(chunk, at);
      if (!this.#inPayload || this.#left > 0) continue;
      this.#inPayload = false;
      const text = this.#endFrame();
      if (text === null) continue;
      pieces.push({ bytes: chunk.subarray(cut, at), text });
      cut = at;
    }
    if (cut < chunk.length) pieces.push({ bytes: chunk.subarray(cut), text: null });
    return pieces;
  }

  #takeHead(chunk: Buffer, at: number): number {
    this.#head.push(chunk[at] as number);
    const [first = 0, second] = this.#head;
    if (second === undefined) return at + 1;
    if ((first & RESERVED) !== 0 || (second & MASKED) !== 0) throw new FrameError("a frame that nobody agreed on");
    const size = second === LENGTH_16 ? 4 : second === LENGTH_64 ? HEAD_MAX : 2;
    if (this.#head.length < size) return at + 1;
    const length = size === 2 ? second : this.#head.slice(2).reduce((sum, byte) => sum * 256 + byte, 0);
    if (!Number.isSafeInteger(length)) throw new FrameError("a frame without an end");
    this.#head = [];
    this.#begin(first & 0x0f, (first & FINAL) !== 0, length);
    return at + 1;
  }

  #begin(opcode: number, isFinal: boolean, length: number): void {
    this.#opcode = opcode;
    this.#isFinal = isFinal;
    this.#left = length;
    this.#inPayload = true;
    if (opcode >= CLOSE) return; // may stand between the frames of a message
    if (opcode !== CONTINUATION) {
      this.#message = opcode === TEXT ? EMPTY : null;
      this.#keptBytes = 0;
      this.#messageBytes = 0;
    }
    this.#messageBytes += length;
    if (this.#messageBytes > READ_MAX_BYTES) this.#message = null;
  }

  #takePayload(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#left);
    this.#left -= end - at;
    if (this.#opcode < CLOSE) this.#keep(chunk.subarray(at, end));
    return end;
  }

  #keep(part: Buffer): void {
    if (this.#message === null) return;
    const bytes = this.#keptBytes + part.length;
    if (bytes > this.#message.length) {
      const larger = Buffer.alloc(Math.min(READ_MAX_BYTES, 2 * bytes));
      this.#message.copy(larger, 0, 0, this.#keptBytes);
      this.#message = larger;
    }
    part.copy(this.#message, this.#keptBytes);
    this.#keptBytes = bytes;
  }

  #endFrame(): Buffer | null {
    if (this.#opcode >= CLOSE || !this.#isFinal || this.#message === null) return null;
    const whole = this.#message.subarray(0, this.#keptBytes);
    this.#message = null;
    return whole;
  }
}

export const textFrame = (text: string): Buffer => frame(TEXT, Buffer.from(text));

/** `reason` is short: a control frame has room for 123 bytes of it. */
export function closeFrame(code: number, reason: string): Buffer {
  const payload = Buffer.alloc(2 + Buffer.byteLength(reason));
  payload.writeUInt16BE(code);
  payload.write(reason, 2);
  return frame(CLOSE, payload);
}

function frame(opcode: number, payload: Buffer): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length < LENGTH_16 ? 2 : length < 65_536 ? 4 : HEAD_MAX);
  head[0] = FINAL | opcode;
  if (head.length === 2) head[1] = length;
  else if (head.length === 4) {
    head[1] = LENGTH_16;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = LENGTH_64;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, payload]);
}
