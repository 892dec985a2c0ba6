/**
 * The log of one workload: segment files in a folder, named by the time of their first line. Lines are buffered in
 * memory and written together. A full segment is followed by a new one, and the oldest are removed beyond the size
 * limit. Times always increase, so the order of lines is the order of times, even when the clock is set back.
 */
import { appendFile, mkdir, open, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { LogTag } from "../../contract/log-line.ts";
import { decodeLine, encodeLine, type LogLine, type StoredLine, timeOf } from "./log-line.ts";

/** Segment size: small enough to be read whole, large enough that a usual log has only a few. */
export const SEGMENT_BYTES_MAX = 4 * 1024 * 1024;
const SEGMENT_NAME = /^\d{16}\.log$/;
/** Bytes read from the end of a segment to find its last line; a line is shorter. */
const TAIL_BYTES = 256 * 1024;
/** Estimated bytes of a line beside its message. */
const LINE_OVERHEAD = 200;

export interface Segment {
  name: string;
  bytes: number;
  writtenMs: number;
}

/** Called per line; returns whether to continue. */
export type Visit = (text: string) => "on" | "stop";

interface Pending {
  nowMs: number;
  tag: LogTag;
  line: LogLine;
}

export class WorkloadLog {
  readonly dir: string;
  readonly #bytesMax: number;
  #segments: Segment[] | null = null;
  #lastUs = 0;
  #pending: Pending[] = [];
  #pendingBytes = 0;
  #busy = 0;
  /** Queue of work on the files, one piece after the other. */
  #work: Promise<unknown> = Promise.resolve();

  constructor(dir: string, bytesMax: number) {
    this.dir = dir;
    this.#bytesMax = bytesMax;
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** True when no line is buffered and no file is being read or written. */
  get idle(): boolean {
    return this.#busy === 0 && this.#pending.length === 0;
  }

  /** Buffers a line and returns its approximate size in bytes. */
  push(nowMs: number, tag: LogTag, line: LogLine): number {
    const bytes = line.message.length + LINE_OVERHEAD;
    this.#pending.push({ nowMs, tag, line });
    this.#pendingBytes += bytes;
    return bytes;
  }

  /** Writes the buffered lines. */
  flush(): Promise<void> {
    return this.#alone(async () => {
      const pending = this.#pending.splice(0);
      this.#pendingBytes = 0;
      const segments = await this.#open();
      const lines = pending.map(({ nowMs, tag, line }) => encodeLine(this.#tick(nowMs), tag, line));
      if (lines.length > 0) await mkdir(this.dir, { recursive: true, mode: 0o700 });
      for (let at = 0; at < lines.length; ) {
        const last = segments.at(-1);
        const segment = last && last.bytes < SEGMENT_BYTES_MAX ? last : this.#addSegment(segments, lines[at] ?? "");
        const batch: string[] = [];
        let bytes = 0;
        while (at < lines.length && segment.bytes + bytes < SEGMENT_BYTES_MAX) {
          const line = lines[at++] ?? "";
          batch.push(line);
          bytes += Buffer.byteLength(line);
        }
        await appendFile(join(this.dir, segment.name), batch.join(""), { mode: 0o600 });
        segment.bytes += bytes;
        segment.writtenMs = Date.now();
        await this.#dropOldest(segments);
      }
    });
  }

  /** Visits every line, newest first, until the visitor stops. */
  async scan(visit: Visit, options: { fromUs?: number; toUs?: number } = {}): Promise<void> {
    const { fromUs = 0, toUs = Number.POSITIVE_INFINITY } = options;
    const segments = await this.#alone(async () => [...(await this.#open())]);
    for (const { name } of segments.reverse()) {
      const firstUs = Number.parseInt(name, 10);
      if (firstUs > toUs) continue;
      const text = await readFile(join(this.dir, name), "utf8").catch(() => ""); // removed by a sweep meanwhile
      if (scanBackwards(text, visit) === "stop" || firstUs < fromUs) return;
    }
  }

  segments(): Promise<Segment[]> {
    return this.#alone(async () => [...(await this.#open())]);
  }

  removeSegments(names: ReadonlySet<string>): Promise<void> {
    return this.#alone(async () => {
      const segments = await this.#open();
      for (const { name } of segments.filter((segment) => names.has(segment.name)))
        await rm(join(this.dir, name), { force: true });
      this.#segments = segments.filter(({ name }) => !names.has(name));
      if (this.#segments.length === 0) await rm(this.dir, { recursive: true, force: true });
    });
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    this.#busy += 1;
    const next = this.#work.then(work).finally(() => {
      this.#busy -= 1;
    });
    this.#work = next.catch(() => {}); // the caller of `work` gets the error
    return next;
  }

  /** The time of the next line, in microseconds. */
  #tick(nowMs: number): number {
    this.#lastUs = Math.max(nowMs * 1000, this.#lastUs + 1);
    return this.#lastUs;
  }

  async #open(): Promise<Segment[]> {
    if (this.#segments) return this.#segments;
    const names = (await readdir(this.dir).catch(() => [])).filter((name) => SEGMENT_NAME.test(name)).sort();
    const segments = await Promise.all(
      names.map(async (name) => {
        const { size, mtimeMs } = await stat(join(this.dir, name));
        return { name, bytes: size, writtenMs: mtimeMs };
      }),
    );
    const last = segments.at(-1);
    if (last) await this.#takeUp(last);
    this.#segments = segments;
    return segments;
  }

  /** Ends a line torn by a crash with a newline, and continues times after the last line. */
  async #takeUp(segment: Segment): Promise<void> {
    const file = await open(join(this.dir, segment.name), "a+");
    try {
      const length = Math.min(TAIL_BYTES, segment.bytes);
      const tail = (await file.read(Buffer.alloc(length), 0, length, segment.bytes - length)).buffer.toString("utf8");
      scanBackwards(tail, (text) => {
        const time = decodeLine(text) ? timeOf(text) : 0;
        this.#lastUs = Math.max(this.#lastUs, time);
        return time > 0 ? "stop" : "on";
      });
      if (length === 0 || tail.endsWith("\n")) return;
      await file.appendFile("\n");
      segment.bytes += 1;
    } finally {
      await file.close();
    }
  }

  #addSegment(segments: Segment[], firstLine: string): Segment {
    const segment = { name: `${firstLine.slice(0, 16)}.log`, bytes: 0, writtenMs: 0 };
    segments.push(segment);
    return segment;
  }

  async #dropOldest(segments: Segment[]): Promise<void> {
    let bytes = segments.reduce((sum, segment) => sum + segment.bytes, 0);
    while (bytes > this.#bytesMax && segments.length > 1) {
      const [oldest] = segments.splice(0, 1);
      bytes -= oldest?.bytes ?? 0;
      await rm(join(this.dir, oldest?.name ?? ""), { force: true });
    }
  }
}

/** The last stored position in each stream of a workload's output. */
export async function positionsIn(log: WorkloadLog, workload: string): Promise<{ stdout: number; stderr: number }> {
  const found: Partial<Record<"stdout" | "stderr", number>> = {};
  const mark = JSON.stringify(workload);
  await log.scan((text) => {
    const { origin }: Partial<StoredLine> = (text.includes(mark) && decodeLine(text)) || {};
    if (origin?.workload === workload) found[origin.stream] ??= origin.end;
    return found.stdout !== undefined && found.stderr !== undefined ? "stop" : "on";
  });
  return { stdout: found.stdout ?? 0, stderr: found.stderr ?? 0 };
}

/** Text after the last newline is incomplete and skipped. */
function scanBackwards(text: string, visit: Visit): "on" | "stop" {
  for (let end = text.lastIndexOf("\n"); end > 0; ) {
    const start = text.lastIndexOf("\n", end - 1) + 1;
    if (start < end && visit(text.slice(start, end)) === "stop") return "stop";
    end = start - 1;
  }
  return "on";
}
