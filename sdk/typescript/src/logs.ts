/** What workloads have written: kept by the platform, also after the end of a process or a sandbox. */
import type { Berth } from "./berth.ts";
import type { CallOptions } from "./core/call.ts";
import { pause } from "./core/wait.ts";
import type { Api } from "./generated/api.ts";

/** A line and when it was written. */
export type LogLine = Awaited<ReturnType<Api["logQuery"]>>[string]["logs"][number];

export interface LogOptions extends CallOptions {
  /** Milliseconds to look back. Default: an hour; at most three days. */
  sinceMs?: number | undefined;
  /** Goes on with what is written later, until the signal or the loop ends. */
  follow?: boolean | undefined;
  /** Text that lines contain. */
  search?: string | undefined;
}

export interface LogSubject {
  resourceType: string;
  workloadIds: string;
  executionId?: string;
  taskId?: string;
}

const SINCE_MS = 3_600_000;
const PAGE = 1000;
/** Lines may be stored a little later than they were written. */
const OVERLAP_MS = 30_000;
const LOOK_MS = 500;

/** Oldest first; no line twice. */
export async function* readLogs(
  berth: Berth,
  subject: LogSubject,
  { sinceMs = SINCE_MS, follow = false, search, ...options }: LogOptions,
): AsyncGenerator<LogLine, void> {
  let told = new Set<string>();
  for (let backMs = sinceMs; ; backMs = OVERLAP_MS) {
    const lines = await written(berth, { ...subject, ...(search ? { search } : {}) }, Date.now() - backMs, options);
    const seen = told;
    told = new Set(lines.keys());
    for (const [time, line] of [...lines].reverse()) if (!seen.has(time)) yield line;
    if (!follow) return;
    await pause(LOOK_MS, options.signal);
  }
}

/** New lines shift the pages, so the same line may appear on two pages. */
async function written(
  berth: Berth,
  subject: LogSubject & { search?: string },
  fromMs: number,
  options: CallOptions,
): Promise<Map<string, LogLine>> {
  const newest = new Map<string, LogLine>();
  const start = new Date(fromMs).toISOString();
  for (let offset = 0, total = 1; offset < total; ) {
    const answer = await berth.api.logQuery({ ...options, query: { ...subject, start, limit: PAGE, offset } });
    const [{ logs, totalCount } = { logs: [], totalCount: 0 }] = Object.values(answer);
    for (const line of logs) newest.set(line.timestamp, line);
    offset += logs.length;
    total = logs.length === 0 ? 0 : totalCount;
  }
  return newest;
}
