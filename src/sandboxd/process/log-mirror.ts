/**
 * Copies the output of all processes into one pair of files, from which the platform collects its logs. Only whole
 * lines are copied, so that lines of two processes never mix. A process that writes faster than the copy loses its
 * oldest lines.
 */
import { writeSync } from "node:fs";
import { LOG_FILE_BYTES_MAX } from "../../contract/sandbox-wire.ts";
import { LogFile } from "./log-file.ts";
import type { ManagedProcess } from "./managed-process.ts";
import type { Stream } from "./output.ts";

/** Most bytes copied of one stream at once; with LOOK_MIN_MS about a megabyte a second. */
const READ_BYTES = 128 * 1024;
/** A stream that is further behind skips ahead and loses the bytes between. */
const BACKLOG_BYTES_MAX = 4 * 1024 * 1024;
const LOOK_MIN_MS = 100;
const LOOK_MAX_MS = 1000;
const STREAMS = ["stdout", "stderr"] as const satisfies readonly Stream[];
const NEWLINE = 0x0a;

export class LogMirror {
  readonly #files: Record<Stream, LogFile>;
  /** The position up to which each process's output has been copied. */
  readonly #copied = new Map<ManagedProcess, Record<Stream, number>>();
  #timer: NodeJS.Timeout | null = null;
  #delayMs = LOOK_MIN_MS;

  constructor(paths: Record<Stream, string>) {
    const open = (path: string): LogFile => new LogFile({ path, base: 0, dropped: 0 });
    this.#files = { stdout: open(paths.stdout), stderr: open(paths.stderr) };
  }

  /** Copies from the first byte, or for an adopted process from its current end. */
  follow(process: ManagedProcess, from: "first" | "now"): void {
    const { stdout, stderr } = process;
    this.#copied.set(process, from === "first" ? { stdout: 0, stderr: 0 } : { stdout: stdout.end, stderr: stderr.end });
    // Keep a timer that is already short: a steady flow of new processes would postpone it for ever.
    if (this.#timer && this.#delayMs === LOOK_MIN_MS) return;
    if (this.#timer) clearTimeout(this.#timer);
    this.#delayMs = LOOK_MIN_MS;
    this.#schedule();
  }

  /** Copies the rest, because the files of an ended process are about to be removed. */
  finish(process: ManagedProcess): void {
    const copied = this.#copied.get(process);
    if (copied) while (this.#copy(process, copied, true));
    this.#copied.delete(process);
  }

  #schedule(): void {
    this.#timer = setTimeout(() => this.#look(), this.#delayMs).unref();
  }

  #look(): void {
    this.#timer = null;
    let any = false;
    for (const [process, copied] of this.#copied) {
      // Read before copying: all output written before the end is then copied.
      const ended = !process.running;
      if (this.#copy(process, copied, ended)) any = true;
      else if (ended) this.#forget(process);
    }
    this.#delayMs = any ? LOOK_MIN_MS : Math.min(this.#delayMs * 2, LOOK_MAX_MS);
    if (this.#copied.size > 0) this.#schedule();
    else for (const stream of STREAMS) this.#files[stream].close();
  }

  #forget(process: ManagedProcess): void {
    this.#copied.delete(process);
    for (const stream of STREAMS) process[stream].close();
  }

  #copy(process: ManagedProcess, copied: Record<Stream, number>, ended: boolean): boolean {
    let any = false;
    for (const stream of STREAMS) {
      try {
        const bytes = this.#copyStream(process[stream], copied[stream], this.#files[stream], ended);
        copied[stream] = bytes.next;
        any ||= bytes.copied > 0;
      } catch {
        // A process in the sandbox removed the file, or the disk is full: the log has a gap, and the sandbox continues.
      }
    }
    return any;
  }

  #copyStream(from: LogFile, position: number, to: LogFile, ended: boolean): { next: number; copied: number } {
    const { end, start } = from;
    const behind = end - position > BACKLOG_BYTES_MAX;
    const at = behind ? end - READ_BYTES : Math.max(position, start);
    if (at >= end) return { next: at, copied: 0 };
    const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, end - at));
    const read = buffer.subarray(0, from.read(at, buffer));
    const first = behind ? read.indexOf(NEWLINE) + 1 : 0;
    const last = read.lastIndexOf(NEWLINE) + 1;
    const rest = ended && at + read.length >= end;
    const until = rest || (last === 0 && read.length === READ_BYTES) ? read.length : last;
    if (until <= first) return { next: position, copied: 0 };
    if (behind) writeSync(to.fd, `[${at + first - position} bytes were left out here]\n`);
    const lines = read.subarray(first, until);
    writeSync(to.fd, lines.at(-1) === NEWLINE ? lines : Buffer.concat([lines, Buffer.of(NEWLINE)]));
    if (to.end - to.start > LOG_FILE_BYTES_MAX) to.trim(LOG_FILE_BYTES_MAX / 2);
    return { next: at + until, copied: until - first };
  }
}
