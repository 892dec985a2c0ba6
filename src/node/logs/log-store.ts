/**
 * The output of workloads, stored below the data folder in segment files, with limits on bytes and age per workload and
 * on bytes of all together. Appending never waits for the disk; lines that the disk cannot take in time are dropped,
 * and a line says how many. A crash of the machine may lose the last moments.
 */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type LogSource, type LogTag, SEVERITY, type SeverityName, severityName } from "../../contract/log-line.ts";
import { type Clock, DAY_MS } from "../../lib/time/clock.ts";
import { countIn, emptyHistogram, type Histogram } from "./histogram.ts";
import {
  decodeLine,
  type LogLine,
  markOf,
  type Origin,
  type StoredLine,
  severityOf,
  sourceOf,
  timeOf,
} from "./log-line.ts";
import { KeptSegments, PendingBytes } from "./log-shares.ts";
import { positionsIn, WorkloadLog } from "./workload-log.ts";

/** Identifies a log: one workload, by its name. */
export type LogSubject = Pick<LogTag, "workspace" | "plural" | "name">;

export interface LogQuery extends LogSubject {
  fromMs: number;
  toMs: number;
  limit: number;
  /** Bytes of the page's lines, as they are stored; a page has one line at least. */
  bytesMax?: number;
  offset?: number;
  source?: LogSource;
  uid?: string;
  revision?: string;
  executionId?: string;
  taskId?: string;
  traceId?: string;
  severities?: readonly SeverityName[];
  /** Case-insensitive text. */
  search?: string;
  /** Only lines after and before these times, in microseconds. */
  afterUs?: number;
  beforeUs?: number;
  /** Also count the lines in so many parts of the range. */
  buckets?: number;
}

export interface LogPage {
  /** Newest first. */
  lines: StoredLine[];
  /** Number of all matching lines, also beyond the page. */
  total: number;
  /** Bytes of the page's lines, as they are stored. */
  bytes: number;
  /** True when `bytesMax` ended the page before `limit` did. */
  cut: boolean;
  histogram?: Histogram;
}

export interface LogStore {
  append(tag: LogTag, lines: readonly LogLine[]): void;
  /** Includes everything appended before the call. */
  query(query: LogQuery): Promise<LogPage>;
  /** Names of the workloads of a kind that have a log. */
  names(workspace: string, plural: string): Promise<string[]>;
  /** The position up to which a workload's output is stored. */
  positions(tag: LogTag, workload: string): Promise<Record<Origin["stream"], number>>;
  /** Resolves when everything appended before the call is written. */
  flush(): Promise<void>;
  /** Removes segments beyond the age limit and, beyond the total size, the oldest of the workspace that has most. */
  sweep(): Promise<void>;
  forgetWorkspace(workspace: string): Promise<void>;
  stop(): Promise<void>;
}

export interface LogBounds {
  workloadBytes: number;
  totalBytes: number;
  ageMs: number;
  /** Bytes queued for the disk. When all workspaces together have more, each may have its share. */
  pendingBytes: number;
}

export const LOG_BOUNDS: LogBounds = {
  workloadBytes: 64 * 1024 * 1024,
  totalBytes: 4 * 1024 * 1024 * 1024,
  ageMs: 7 * DAY_MS,
  pendingBytes: 32 * 1024 * 1024,
};

export interface LogStoreOptions {
  dir: string;
  clock: Clock;
  bounds?: Partial<LogBounds>;
  onError(error: unknown): void;
}

const FLUSH_MS = 200;

export function openLogStore(options: LogStoreOptions): LogStore {
  return new FolderLogStore(options);
}

class FolderLogStore implements LogStore {
  readonly #dir: string;
  readonly #clock: Clock;
  readonly #bounds: LogBounds;
  readonly #onError: (error: unknown) => void;
  readonly #logs = new Map<string, WorkloadLog>();
  /** Logs with queued lines, and whose they are. */
  readonly #dirty = new Map<WorkloadLog, string>();
  readonly #pending = new PendingBytes();
  readonly #dropped = new Map<WorkloadLog, { tag: LogTag; lines: number }>();
  #timer: NodeJS.Timeout | null = null;
  #flushing: Promise<void> = Promise.resolve();

  constructor({ dir, clock, bounds, onError }: LogStoreOptions) {
    this.#dir = dir;
    this.#clock = clock;
    this.#bounds = { ...LOG_BOUNDS, ...bounds };
    this.#onError = onError;
  }

  append(tag: LogTag, lines: readonly LogLine[]): void {
    const log = this.#logOf(tag);
    this.#logs.set(keyOf(tag), log);
    for (const line of lines) {
      if (!this.#pending.hasRoom(tag.workspace, this.#bounds.pendingBytes)) {
        const before = this.#dropped.get(log)?.lines ?? 0;
        this.#dropped.set(log, { tag, lines: before + 1 });
        continue;
      }
      this.#push(log, tag, line);
    }
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
  }

  #push(log: WorkloadLog, tag: LogTag, line: LogLine): void {
    this.#pending.add(tag.workspace, log.push(this.#clock.now(), tag, line));
    this.#dirty.set(log, tag.workspace);
  }

  flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#flushing = this.#flushing.then(() => this.#flushAll());
    return this.#flushing;
  }

  async #flushAll(): Promise<void> {
    for (const [log, { tag, lines }] of this.#dropped) {
      const message = `${lines} lines were dropped: they came faster than they could be written.`;
      this.#push(log, tag, { message, severity: SEVERITY.WARNING });
    }
    this.#dropped.clear();
    for (const [log, workspace] of [...this.#dirty]) {
      this.#dirty.delete(log);
      this.#pending.add(workspace, -log.pendingBytes);
      await log.flush().catch((error: unknown) => this.#onError(error));
    }
  }

  async query({ limit, offset = 0, bytesMax = Number.POSITIVE_INFINITY, ...query }: LogQuery): Promise<LogPage> {
    await this.flush();
    const fromUs = Math.max(query.fromMs * 1000, (query.afterUs ?? -1) + 1);
    const toUs = Math.min(query.toMs * 1000 + 999, (query.beforeUs ?? Number.POSITIVE_INFINITY) - 1);
    const histogram = query.buckets === undefined ? null : emptyHistogram(query.buckets);
    const spanUs = query.toMs * 1000 + 1000 - query.fromMs * 1000;
    const { mayMatch, matches, mustDecode } = matcherOf(query);
    const lines: StoredLine[] = [];
    let total = 0;
    let bytes = 0;
    let cut = false;
    await this.#logOf(query).scan(
      (text) => {
        const time = timeOf(text);
        if (time < fromUs) return "stop";
        if (!(time <= toUs) || !mayMatch(text)) return "on";
        // Lines outside the page are only counted.
        const isInPage = total >= offset && total < offset + limit && !cut;
        const line = mustDecode || isInPage ? decodeLine(text) : undefined;
        if (line === null || (line && !matches(line))) return "on";
        if (line && isInPage) {
          cut = lines.length > 0 && bytes + text.length > bytesMax;
          if (!cut) lines.push(line);
          if (!cut) bytes += text.length;
        }
        total += 1;
        if (histogram) countIn(histogram, (time - query.fromMs * 1000) / spanUs, severityOf(text));
        return "on";
      },
      { fromUs, toUs },
    );
    return { lines, total, bytes, cut, ...(histogram ? { histogram } : {}) };
  }

  async names(workspace: string, plural: string): Promise<string[]> {
    await this.flush();
    return (await readdir(join(this.#dir, word(workspace), word(plural))).catch(() => []))
      .map((name) => decodeURIComponent(name))
      .sort();
  }

  async positions(tag: LogTag, workload: string): Promise<Record<Origin["stream"], number>> {
    await this.flush();
    return positionsIn(this.#logOf(tag), workload);
  }

  async sweep(): Promise<void> {
    await this.flush();
    const now = this.#clock.now();
    const kept = new KeptSegments();
    for (const log of await this.#all()) {
      const segments = await log.segments();
      const old = segments.filter(({ writtenMs }) => writtenMs + this.#bounds.ageMs < now);
      if (old.length > 0) await log.removeSegments(new Set(old.map(({ name }) => name)));
      const [workspace = ""] = log.dir.slice(this.#dir.length + 1).split("/");
      for (const segment of segments) if (!old.includes(segment)) kept.add(workspace, { log, ...segment });
    }
    for (const { log, name } of kept.beyond(this.#bounds.totalBytes)) await log.removeSegments(new Set([name]));
    // Idle logs are closed and opened again at the next query.
    for (const [key, log] of this.#logs) if (log.idle) this.#logs.delete(key);
  }

  async forgetWorkspace(workspace: string): Promise<void> {
    await this.flush();
    for (const key of this.#logs.keys()) if (key.startsWith(`${word(workspace)}/`)) this.#logs.delete(key);
    await rm(join(this.#dir, word(workspace)), { recursive: true, force: true });
  }

  async stop(): Promise<void> {
    await this.flush();
  }

  async #all(): Promise<WorkloadLog[]> {
    const entries = await readdir(this.#dir, { recursive: true, withFileTypes: true }).catch(() => []);
    const dirs = new Set(entries.filter((entry) => entry.isFile()).map(({ parentPath }) => parentPath));
    return [...dirs].map((dir) => this.#logAt(dir.slice(this.#dir.length + 1)));
  }

  #logOf(subject: LogSubject): WorkloadLog {
    return this.#logAt(keyOf(subject));
  }

  #logAt(key: string): WorkloadLog {
    return this.#logs.get(key) ?? new WorkloadLog(join(this.#dir, key), this.#bounds.workloadBytes);
  }
}

const keyOf = ({ workspace, plural, name }: LogSubject): string => `${word(workspace)}/${word(plural)}/${word(name)}`;

/** Names come from users and must not lead out of the folder. */
const word = (name: string): string => encodeURIComponent(name).replace(/^\.+/, (dots) => dots.replaceAll(".", "%2E"));

interface Matcher {
  /** A quick test on the raw text: false is certain, true must be confirmed with `matches`. */
  mayMatch(text: string): boolean;
  matches(line: StoredLine): boolean;
  mustDecode: boolean;
}

function matcherOf(query: Omit<LogQuery, "limit" | "offset">): Matcher {
  const { source, severities, search = "" } = query;
  const members = (["uid", "revision", "executionId", "taskId", "traceId"] as const).flatMap((member) => {
    const value = query[member];
    return value === undefined ? [] : [{ member, value, mark: markOf(MARKS[member], value) }];
  });
  const wanted = severities && severities.length > 0 ? new Set<SeverityName>(severities) : null;
  const found = search.toLowerCase();
  const written = JSON.stringify(found).slice(1, -1);
  const holds = (text: string): boolean => text.toLowerCase().includes(found);
  return {
    mustDecode: members.length > 0 || found !== "",
    mayMatch: (text) =>
      (source === undefined || sourceOf(text) === source) &&
      (wanted === null || wanted.has(severityName(severityOf(text)))) &&
      members.every(({ mark }) => text.includes(mark)) &&
      (found === "" || text.toLowerCase().includes(written)),
    matches: (line) =>
      members.every(({ member, value }) => line[member] === value) &&
      (found === "" ||
        holds(line.message) ||
        (line.attributes !== undefined && holds(JSON.stringify(line.attributes)))),
  };
}

const MARKS = { uid: "u", revision: "r", executionId: "e", taskId: "k", traceId: "t" } as const;
