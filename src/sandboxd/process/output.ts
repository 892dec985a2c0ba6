/** Ways to read a process's output: all of it, the tail, or as it is written. */
import type { TextSource } from "../http/json-stream.ts";
import { type LogFile, TRUNCATION_MARKER } from "./log-file.ts";
import type { ManagedProcess } from "./managed-process.ts";

export type Stream = "stdout" | "stderr";

const READ_BYTES = 64 * 1024;
/** Pauses of a follower with nothing to read: short right after output, longer in silence. */
const FOLLOW_PAUSE_MIN_MS = 4;
const FOLLOW_PAUSE_MAX_MS = 50;

/** The last `bytesMax` of one stream, after a marker when earlier output was left out. */
export function tailOf(file: LogFile, bytesMax: number): TextSource {
  const { position: first, cut } = file.tailStart(bytesMax);
  const end = file.end;
  /** Offset between the reader's position, which counts the bytes it was given, and the position in the file. */
  let ahead = first;
  return {
    sizeHint: end - first,
    empty: end === first && !cut,
    ...(cut ? { prefix: TRUNCATION_MARKER } : {}),
    // The end is fixed here, so that a process that keeps writing cannot make an answer endless.
    read: (position, buffer) => {
      if (position === 0) ahead = first;
      let mark = 0;
      if (position + ahead < file.start) {
        // The bytes were dropped while being read: go on at the next kept line, after a marker unless `prefix` already
        // is one.
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
  /** Bytes before these were dropped because they were written faster than they were read. */
  skipped: boolean;
}

/**
 * Yields everything from the first kept byte, or from now on, until the process has ended and all is read. Yields null
 * after a while without output, so that the reader can send a keep-alive.
 */
export async function* follow(
  process: ManagedProcess,
  signal: AbortSignal,
  from: "start" | "now" = "start",
): AsyncGenerator<OutputEvent | null> {
  const begin = ({ end }: LogFile): number => (from === "now" ? end : 0);
  const streams: { stream: Stream; file: LogFile; position: number }[] = [
    { stream: "stdout", file: process.stdout, position: begin(process.stdout) },
    { stream: "stderr", file: process.stderr, position: begin(process.stderr) },
  ];
  const buffer = Buffer.alloc(READ_BYTES);
  let pauseMs = FOLLOW_PAUSE_MIN_MS;
  while (!signal.aborted) {
    // Read before the output: all bytes written before the end are then read.
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

/** A longer line is delivered in several lines, each with its prefix, to bound the reader's memory. */
export const LINE_CHARS_MAX = 1024 * 1024;

/** Splits a stream of bytes into whole lines; characters split between two reads stay whole. */
export class LineCutter {
  readonly #decoder = new TextDecoder();
  #rest = "";

  push(bytes: Uint8Array): string[] {
    return this.#cut(this.#decoder.decode(bytes, { stream: true }));
  }

  /** The last line, which may have no newline. */
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
