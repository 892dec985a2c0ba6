/**
 * Keeps all output files below two limits: per file, and for all together. One timer checks the sizes, often while a
 * file grows fast and rarely otherwise: a flood overshoots by some megabytes, and an idle sandbox sleeps.
 */
import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { LOG_FILE_BYTES_MAX } from "../../contract/sandbox-wire.ts";
import type { LogFile } from "./log-file.ts";

/** Share of a file that a trim keeps. Half, so that a steady writer costs one hole per 16 MB and not one per check. */
const KEEP_RATIO = 0.5;
const ALL_FILES_MEMORY_SHARE = 0.1; // the root file system of a sandbox may lie in memory
const ALL_FILES_BYTES_MIN = 2 * LOG_FILE_BYTES_MAX;
const LOOK_FAST_MS = 5;
const LOOK_LIVE_MS = 100;
const LOOK_IDLE_MS = 5000;
/** Growth between two checks that counts as fast. */
const FAST_GROWTH_BYTES = 256 * 1024;

export interface KeptLog {
  file: LogFile;
  /**
   * The process still runs. Files of ended processes are checked rarely; children that outlived them may still write.
   */
  live: boolean;
  /** The head was dropped. Recorded, so that a later daemon knows where the rest begins. */
  onTrim?: () => void;
}

export class LogKeeper {
  readonly #logs: () => Iterable<KeptLog>;
  readonly #allFilesBytesMax: number;
  /** Sizes at the last check, for files that the current check skips. */
  readonly #seen = new WeakMap<LogFile, { end: number; kept: number }>();
  #timer: NodeJS.Timeout | null = null;
  #delayMs = Number.POSITIVE_INFINITY;
  #nextFullLookMs = 0;

  constructor(logs: () => Iterable<KeptLog>) {
    this.#logs = logs;
    this.#allFilesBytesMax = Math.max(ALL_FILES_BYTES_MIN, memoryLimitBytes() * ALL_FILES_MEMORY_SHARE);
  }

  /** Starts the checks, because a process has started. */
  wake(): void {
    this.#schedule(LOOK_LIVE_MS);
  }

  #schedule(delayMs: number): void {
    if (this.#timer && this.#delayMs <= delayMs) return;
    if (this.#timer) clearTimeout(this.#timer);
    this.#delayMs = delayMs;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#look();
    }, delayMs).unref();
  }

  #look(): void {
    const nowMs = Date.now();
    const full = nowMs >= this.#nextFullLookMs;
    if (full) this.#nextFullLookMs = nowMs + LOOK_IDLE_MS;
    let total = 0;
    let pace = Number.POSITIVE_INFINITY;
    let largest: { log: KeptLog; kept: number } | null = null;
    for (const log of this.#logs()) {
      const before = this.#seen.get(log.file);
      // Hundreds of ended processes are kept; reading all their sizes at every check would be most of the work.
      const skip = before && !log.live && !full;
      const now = skip ? before : this.#measure(log);
      const grown = now.end - (before?.end ?? 0);
      pace = Math.min(pace, grown > FAST_GROWTH_BYTES ? LOOK_FAST_MS : log.live ? LOOK_LIVE_MS : LOOK_IDLE_MS);
      total += now.kept;
      if (!largest || now.kept > largest.kept) largest = { log, kept: now.kept };
    }
    // One trim per check is enough: while the sum is too high, the next check comes after LOOK_FAST_MS.
    if (total > this.#allFilesBytesMax && largest) {
      trim(largest.log, largest.kept * KEEP_RATIO);
      this.#measure(largest.log);
      pace = LOOK_FAST_MS;
    }
    if (Number.isFinite(pace)) this.#schedule(pace);
  }

  #measure(log: KeptLog): { end: number; kept: number } {
    const { file, live } = log;
    const { end } = file;
    if (end - file.start > LOG_FILE_BYTES_MAX) trim(log, LOG_FILE_BYTES_MAX * KEEP_RATIO);
    if (!live) file.close();
    const measured = { end, kept: end - file.start };
    this.#seen.set(file, measured);
    return measured;
  }
}

function trim({ file, onTrim }: KeptLog, keepBytes: number): void {
  file.trim(keepBytes);
  onTrim?.();
}

/** The memory limit of the sandbox: that of its control group, otherwise the machine's memory. */
function memoryLimitBytes(): number {
  for (const file of ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]) {
    try {
      const limit = Number(readFileSync(file, "utf8"));
      if (limit > 0 && limit < totalmem()) return limit;
    } catch {
      // Absent or unreadable in most sandboxes; the machine's memory is the limit then.
    }
  }
  return totalmem();
}
