/**
 * Copies the output of workloads into the log store. The output lies in files that the driver keeps short; each is read
 * from where the last poll ended. A busy workload is polled often, an idle one rarely, and one whose log is queried at
 * once. Output beyond READ_BYTES waits for the next poll; a flood is skipped, and a line says how many bytes.
 */
import { type LogTag, SEVERITY } from "../../contract/log-line.ts";
import { type Clock, SECOND_MS } from "../../lib/time/clock.ts";
import type { LogLine, Origin } from "./log-line.ts";
import type { LogStore, LogSubject } from "./log-store.ts";
import { parseLine } from "./parse-output.ts";

export interface OutputSource {
  readOutput(
    uid: string,
    stream: Origin["stream"],
    offset: number,
    bytesMax: number,
  ): Promise<{ bytes: Buffer; size: number }>;
}

export interface FollowerOptions {
  store: LogStore;
  clock: Clock;
  /** When a workload was last used; a used workload is polled at least every LOOK_USED_MS. */
  lastUsedMs?(uid: string): number;
  onError(error: unknown): void;
}

/** Most bytes read of one stream per poll; with LOOK_MIN_MS half a megabyte a second, some thousand lines. */
export const READ_BYTES = 128 * 1024;
/** A backlog up to this size is copied completely; a larger one is skipped. */
export const BACKLOG_BYTES_MAX = 4 * 1024 * 1024;
const LOOK_MIN_MS = 250;
/** Longest poll interval. Files hold far more than is written in this time, and a query polls first. */
const LOOK_MAX_MS = 30 * SECOND_MS;
/** Longest poll interval of a workload in use, whether it writes or not. */
const LOOK_USED_MS = SECOND_MS;
/** Most polls at the same time: each holds a few file descriptors. */
const LOOKS_AT_ONCE = 8;
const STREAMS = ["stdout", "stderr"] as const;
const NEWLINE = 0x0a;

interface Followed {
  uid: string;
  tag: LogTag;
  source: OutputSource;
  position: Record<Origin["stream"], number>;
  lookedMs: number;
  everyMs: number;
  looking: Promise<void> | null;
}

export class OutputFollower {
  readonly #options: FollowerOptions;
  readonly #followed = new Map<string, Followed>();
  readonly #timer: NodeJS.Timeout;
  #looks = 0;
  /** Workspaces that were polled at the last tick. */
  #hadTurn = new Set<string>();

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#tick(), LOOK_MIN_MS).unref();
  }

  follow(uid: string, tag: LogTag, source: OutputSource, position = { stdout: 0, stderr: 0 }): void {
    if (this.#followed.has(uid)) return;
    // The first poll comes later: a new workload has little output, and others may be starting too.
    const lookedMs = this.#options.clock.now();
    this.#followed.set(uid, { uid, tag, source, position, lookedMs, everyMs: LOOK_USED_MS, looking: null });
  }

  /** Copies the remaining output and stops following. */
  async finish(uid: string): Promise<void> {
    const followed = this.#followed.get(uid);
    if (!followed) return;
    for (let before = -1; before !== sum(followed.position); ) {
      before = sum(followed.position);
      await this.#look(followed, true);
    }
    this.#followed.delete(uid);
  }

  /** Stops following without reading, because no output is left. */
  drop(uid: string): void {
    this.#followed.delete(uid);
  }

  /** Polls now every workload that writes into this log. */
  async lookAt({ workspace, plural, name }: LogSubject): Promise<void> {
    const asked = [...this.#followed.values()].filter(
      ({ tag }) => tag.workspace === workspace && tag.plural === plural && tag.name === name,
    );
    await Promise.all(asked.map((followed) => this.#look(followed)));
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all([...this.#followed.values()].map(({ looking }) => looking));
  }

  #tick(): void {
    const nowMs = this.#options.clock.now();
    const due = new Map<string, Followed[]>();
    for (const followed of this.#followed.values()) {
      if (!this.#isDue(followed, nowMs)) continue;
      const { workspace } = followed.tag;
      const others = due.get(workspace);
      if (others) others.push(followed);
      else due.set(workspace, [followed]);
    }
    // Workspaces take turns, beginning with those that had none last time.
    const turns = [...due.keys()].sort((a, b) => Number(this.#hadTurn.has(a)) - Number(this.#hadTurn.has(b)));
    this.#hadTurn = new Set();
    for (let round = 0; turns.some((workspace) => round < (due.get(workspace)?.length ?? 0)); round += 1) {
      for (const workspace of turns) {
        const next = due.get(workspace)?.[round];
        if (this.#looks >= LOOKS_AT_ONCE) return;
        if (next === undefined) continue;
        this.#hadTurn.add(workspace);
        void this.#look(next);
      }
    }
  }

  #isDue({ uid, looking, lookedMs, everyMs }: Followed, nowMs: number): boolean {
    if (looking) return false;
    const used = (this.#options.lastUsedMs?.(uid) ?? 0) >= lookedMs;
    return lookedMs + (used ? Math.min(everyMs, LOOK_USED_MS) : everyMs) <= nowMs;
  }

  /** One poll at a time per workload; a call meanwhile waits for the running poll and then polls again. */
  async #look(followed: Followed, last = false): Promise<void> {
    while (followed.looking) await followed.looking;
    this.#looks += 1;
    followed.looking = this.#takeSome(followed, last)
      .catch((error: unknown) => this.#options.onError(error))
      .finally(() => {
        this.#looks -= 1;
        followed.looking = null;
        // Moved to the end, so that the longest-waiting workload is next when LOOKS_AT_ONCE is reached.
        if (this.#followed.delete(followed.uid)) this.#followed.set(followed.uid, followed);
      });
    await followed.looking;
  }

  async #takeSome(followed: Followed, last: boolean): Promise<void> {
    const { uid, tag, source, position } = followed;
    followed.lookedMs = this.#options.clock.now();
    let taken = 0;
    for (const stream of STREAMS) {
      const lines: LogLine[] = [];
      const there = await source.readOutput(uid, stream, position[stream], 0);
      if (there.size === position[stream]) continue;
      const skipped = await this.#skipFlood(followed, stream, there.size);
      if (skipped > 0) lines.push(dropped(skipped));
      const { bytes, size } = await source.readOutput(uid, stream, position[stream], READ_BYTES);
      const atEnd = position[stream] + bytes.length >= size;
      const whole = wholeLines(bytes, last && atEnd);
      for (const { text, end } of whole.lines) {
        const origin = { workload: uid, stream, end: position[stream] + end };
        lines.push({ ...parseLine(text, stream, tag.source), origin });
      }
      position[stream] += whole.bytes;
      taken += whole.bytes;
      if (lines.length > 0) this.#options.store.append(tag, lines);
    }
    followed.everyMs = taken > 0 ? LOOK_MIN_MS : Math.min(followed.everyMs * 2, LOOK_MAX_MS);
  }

  async #skipFlood({ uid, source, position }: Followed, stream: Origin["stream"], size: number): Promise<number> {
    if (size < position[stream]) position[stream] = 0; // the file was emptied
    if (size - position[stream] <= BACKLOG_BYTES_MAX) return 0;
    const near = size - READ_BYTES;
    const { bytes } = await source.readOutput(uid, stream, near, READ_BYTES);
    const next = near + bytes.indexOf(NEWLINE) + 1;
    const skipped = next - position[stream];
    position[stream] = next;
    return skipped;
  }
}

/** An incomplete last line is left for the next read, unless this is the last read or the line fills READ_BYTES. */
function wholeLines(bytes: Buffer, isLast: boolean): { lines: { text: string; end: number }[]; bytes: number } {
  const complete = bytes.lastIndexOf(NEWLINE) + 1;
  const until = isLast || (complete === 0 && bytes.length >= READ_BYTES) ? bytes.length : complete;
  const lines: { text: string; end: number }[] = [];
  for (let start = 0; start < until; ) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline === -1 || newline >= until ? until : newline;
    // A dropped head of a file reads as zeros.
    const text = bytes.toString("utf8", start, end).replaceAll("\0", "").trimEnd();
    start = end + 1;
    if (text !== "") lines.push({ text, end: Math.min(start, until) });
  }
  return { lines, bytes: until };
}

const sum = ({ stdout, stderr }: Record<Origin["stream"], number>): number => stdout + stderr;

const dropped = (bytes: number): LogLine => ({
  message: `${Math.ceil(bytes / 1024)} KB of output were dropped here: they came faster than logs are kept.`,
  severity: SEVERITY.WARNING,
});
