/** Ways to read a process's output: whole, the tail, or as it comes. */
import type { TextSource } from "../http/json-stream.ts";
import { type LogFile, TRUNCATION_MARKER } from "./log-file.ts";
import type { ManagedProcess } from "./managed-process.ts";

export type Stream = "stdout" | "stderr";

const READ_BYTES = 64 * 1024;
/** Pauses of a follower with nothing to read: short right after output, longer in silence. */
const FOLLOW_PAUSE_MIN_MS = 4;
const FOLLOW_PAUSE_MAX_MS = 50;

/** The last `bytesMax` of one stream, with the mark of what was left out. */
export function tailOf(file: LogFile, bytesMax: number): TextSource {
  const { position: first, cut } = file.tailStart(bytesMax);
  const end = file.end;
  /** From a position of the reader, who counts what he is given, to one of the file. */
  let ahead = first;
  return {
    sizeHint: end - first,
    empty: end === first && !cut,
    ...(cut ? { prefix: TRUNCATION_MARKER } : {}),
    // The end is fixed now, so that a process that keeps writing cannot make an answer endless.
    read: (position, buffer) => {
      if (position === 0) ahead = first;
      let mark = 0;
      if (position + ahead < file.start) {
        // Dropped while it was read: on at the next line that is there, after a mark unless the prefix is that mark.
        const text = position > 0 ? `\n${TRUNCATION_MARKER}` : cut ? "" : TRUNCATION_MARKER;
        mark = new TextEncoder().encodeInto(text, buffer).written;
        ahead = file.tailStart(Number.POSITIVE_INFINITY).position - position - mark;
      }
      const at = position + mark + ahead;
      if (at >= end) return mark;
      return mark + file.read(at, buffer.subarray(mark, Math.min(buffer.byteLength, mark + end - at)));
    },
  };
}

export interface OutputEvent {
  stream: Stream;
  bytes: Uint8Array;
  /** Bytes before these were dropped because they came faster than they were read. */
  skipped: boolean;
}

/**
 * Everything from the first kept byte until the process has ended and all is read. Yields null when there was nothing
 * for a while, so that the reader can send signs of life.
 */
export async function* follow(process: ManagedProcess, signal: AbortSignal): AsyncGenerator<OutputEvent | null> {
  const streams: { stream: Stream; file: LogFile; position: number }[] = [
    { stream: "stdout", file: process.stdout, position: 0 },
    { stream: "stderr", file: process.stderr, position: 0 },
  ];
  const buffer = Buffer.alloc(READ_BYTES);
  let pauseMs = FOLLOW_PAUSE_MIN_MS;
  while (!signal.aborted) {
    // Asked before reading: what was written before the end is then read for certain.
    const ended = !process.running;
    let any = false;
    for (const at of streams) {
      const skipped = at.position < at.file.start;
      if (skipped) at.position = at.file.start;
      const got = at.file.read(at.position, buffer);
      if (got === 0) continue;
      at.position += got;
      any = true;
      yield { stream: at.stream, bytes: buffer.subarray(0, got), skipped };
    }
    if (any) {
      pauseMs = FOLLOW_PAUSE_MIN_MS;
      continue;
    }
    if (ended) return;
    yield null;
    await process.ended({ signal, timeoutMs: pauseMs });
    pauseMs = Math.min(pauseMs * 2, FOLLOW_PAUSE_MAX_MS);
  }
}

/** A line longer than this is delivered in several, each with its prefix: a reader's memory is bounded too. */
export const LINE_CHARS_MAX = 1024 * 1024;

/** Cuts a stream of bytes into whole lines; characters split between two reads stay whole. */
export class LineCutter {
  readonly #decoder = new TextDecoder();
  #rest = "";

  push(bytes: Uint8Array): string[] {
    return this.#cut(this.#decoder.decode(bytes, { stream: true }));
  }

  /** The last line, which may lack its newline. */
  end(): string[] {
    const lines = this.#cut(this.#decoder.decode());
    if (this.#rest !== "") lines.push(this.#rest);
    this.#rest = "";
    return lines;
  }

  #cut(text: string): string[] {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length <= LINE_CHARS_MAX) return lines;
    lines.push(this.#rest);
    this.#rest = "";
    return lines;
  }
}
