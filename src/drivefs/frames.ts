/**
 * Messages between a mount of a drive and the server that has its files: a JSON head, and bytes behind it.
 *
 *   u32 length of all that follows | u32 length of the head | head | body
 *
 * Names of files are bytes. A head writes them as texts whose characters are the bytes (latin1).
 */

export interface Frame<Head = Record<string, unknown>> {
  head: Head;
  body: Buffer;
}

/** Bytes that one read or write carries; the kernel sends no more at once. */
export const DATA_BYTES_MAX = 1024 * 1024;
/** A head has two paths at most, and a path has PATH_BYTES_MAX, of which JSON may write six characters each. */
const HEAD_BYTES_MAX = 64 * 1024;
export const FRAME_BYTES_MAX = DATA_BYTES_MAX + HEAD_BYTES_MAX;

const NOTHING = Buffer.alloc(0);

/** The parts of a message, which are written one after the other; the body is not copied. */
export function frameOf(head: object, body: Buffer = NOTHING): Buffer[] {
  const text = Buffer.from(JSON.stringify(head), "utf8");
  const start = Buffer.allocUnsafe(8);
  start.writeUInt32LE(4 + text.length + body.length, 0);
  start.writeUInt32LE(text.length, 4);
  const front = Buffer.concat([start, text]);
  return body.length === 0 ? [front] : [front, body];
}

/** Cuts a stream into messages. Throws for what is none. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #bytes = 0;

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }

  /** Null until the next message is there as a whole. */
  next<Head = Record<string, unknown>>(): Frame<Head> | null {
    if (this.#bytes < 8) return null;
    const length = this.#front(8).readUInt32LE(0);
    if (length < 4 || length > FRAME_BYTES_MAX) throw new Error("a message has no length that can be");
    if (this.#bytes < 4 + length) return null;
    const message = this.#front(4 + length);
    const headEnd = 8 + message.readUInt32LE(4);
    if (headEnd > 4 + length) throw new Error("a message is shorter than its head");
    const head: unknown = JSON.parse(message.toString("utf8", 8, headEnd));
    if (typeof head !== "object" || head === null) throw new Error("the head of a message is no object");
    this.#drop(4 + length);
    return { head: head as Head, body: message.subarray(headEnd, 4 + length) };
  }

  /** What is no whole message yet. */
  rest(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  /** The first bytes as one buffer; they stay. */
  #front(bytes: number): Buffer {
    const [first = NOTHING] = this.#chunks;
    if (first.length >= bytes) return first;
    const whole = Buffer.concat(this.#chunks);
    this.#chunks = [whole];
    return whole;
  }

  #drop(bytes: number): void {
    const [first = NOTHING, ...rest] = this.#chunks;
    const left = first.subarray(bytes);
    this.#chunks = left.length === 0 ? rest : [left, ...rest];
    this.#bytes -= bytes;
  }
}
