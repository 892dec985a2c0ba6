/**
 * Splits a stream into server-sent events. The splitter reads every byte once, whatever the chunking, and returns each
 * event as the bytes in which it arrived, so that a pass-through changes no byte.
 */
export interface SseEvent {
  /** The event's name; empty when it has none. */
  event: string;
  data: string;
}

const LF = 0x0a;
const CR = 0x0d;

export class SseSplitter {
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Bytes of the current line so far, without a trailing carriage return. */
  #lineBytes = 0;
  #sawCr = false;
  #started = false;

  /** Returns the complete events, each with its terminating blank line, and keeps the rest for the next chunk. */
  push(chunk: Buffer): Buffer[] {
    const events: Buffer[] = [];
    let from = 0;
    let at = 0;
    while (at < chunk.length) {
      const newline = chunk.indexOf(LF, at);
      const stop = newline < 0 ? chunk.length : newline;
      this.#measure(chunk, at, stop);
      if (newline < 0) break;
      at = newline + 1;
      const blank = this.#lineBytes === 0;
      this.#lineBytes = 0;
      this.#sawCr = false;
      if (!blank) this.#started = true;
      // A blank line before any field ends no event; it stays with the event that follows.
      if (!blank || !this.#started) continue;
      events.push(this.#take(chunk.subarray(from, at)));
      from = at;
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from));
    return events;
  }

  /** Bytes of the event that is still incomplete. */
  get pendingBytes(): number {
    return this.#bytes;
  }

  /** Returns and drops the incomplete rest: at the end of the stream, or when it exceeds a limit. */
  drain(): Buffer {
    this.#lineBytes = 0;
    this.#sawCr = false;
    return this.#take(Buffer.alloc(0));
  }

  #measure(chunk: Buffer, from: number, to: number): void {
    if (from === to) return;
    // A carriage return counts as a byte only when something other than a newline follows it.
    let bytes = to - from + (this.#sawCr ? 1 : 0);
    this.#sawCr = chunk[to - 1] === CR;
    if (this.#sawCr) bytes -= 1;
    this.#lineBytes += bytes;
  }

  #keep(part: Buffer): void {
    this.#parts.push(part);
    this.#bytes += part.length;
  }

  #take(last: Buffer): Buffer {
    const whole = this.#parts.length === 0 ? last : Buffer.concat([...this.#parts, last]);
    this.#parts = [];
    this.#bytes = 0;
    this.#started = false;
    return whole;
  }
}

/** Parses the bytes of one event; null for a block of comments only. */
export function parseSseEvent(block: Buffer): SseEvent | null {
  let event = "";
  let data: string | null = null;
  for (const raw of block.toString("utf8").split("\n")) {
    const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
    const colon = line.indexOf(":");
    if (colon === 0 || line === "") continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") data = data === null ? value : `${data}\n${value}`;
    else if (field === "event") event = value;
  }
  return data === null ? null : { event, data };
}

/** One event as bytes on the wire. `data` must not contain a line break; JSON text never does. */
export function formatSseEvent(data: string, event?: string): string {
  return event ? `event: ${event}\ndata: ${data}\n\n` : `data: ${data}\n\n`;
}
