/**
 * Writes the starts and ends of tasks to the queue. While one batch of an execution is written, the next one gathers,
 * so that many tasks share a commit. The start of a short task is written together with its end.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../kinds/port.ts";
import { type Clock, SECOND_MS } from "../lib/time/clock.ts";
import type { TaskClaim, TaskOutcome } from "../store/executions/execution.ts";
import type { ClaimWish, ReportRules, TaskReport, TaskStart } from "../store/executions/queue.ts";
import type { Store } from "../store/store.ts";

/** A task that ends within this time needs no separate write for its start. */
const START_TOLD_MS = 100;
export const REPORT_AGAIN_MS = SECOND_MS;

export interface TaskReportsOptions {
  store: Store;
  clock: Clock;
  log: Log;
  rules: ReportRules;
  /** No retries after this signal aborts. */
  stopping: AbortSignal;
  /** What may be claimed together with the reports of an execution; null = nothing. */
  next(executionId: string, ended: number): Next | null;
  /** Another server holds the attempt now. */
  onLost(workload: string): void;
}

export interface Next {
  wish: ClaimWish;
  launch(claims: TaskClaim[]): void;
}

interface Start extends TaskStart {
  workload: string;
  told: boolean;
}

export class TaskReports {
  readonly #options: TaskReportsOptions;
  /** Starts of running tasks that are not reported yet, by execution and workload. */
  readonly #starts = new Map<string, Map<string, Start>>();
  /** Reports waiting for the current write, by execution. */
  readonly #gathering = new Map<string, { reports: TaskReport[]; written: Promise<void> }>();
  readonly #writing = new Map<string, Promise<void>>();
  #timer: NodeJS.Timeout | null = null;

  constructor(options: TaskReportsOptions) {
    this.#options = options;
  }

  started({ executionId, index, attempt, workload }: TaskClaim): void {
    const starts = this.#starts.get(executionId) ?? new Map<string, Start>();
    this.#starts.set(executionId, starts.set(workload, { index, attempt, atMs: this.#now(), workload, told: false }));
    this.#timer ??= setTimeout(() => void this.#tellStarts(), START_TOLD_MS).unref();
  }

  ended({ executionId, index, attempt, workload }: TaskClaim, outcome: TaskOutcome): Promise<void> {
    const starts = this.#starts.get(executionId);
    const start = starts?.get(workload);
    if (starts?.delete(workload) && starts.size === 0) this.#starts.delete(executionId);
    return this.report(executionId, { index, attempt, outcome, ...(start ? { startedAtMs: start.atMs } : {}) });
  }

  report(executionId: string, report: TaskReport): Promise<void> {
    const gathering = this.#gathering.get(executionId);
    if (gathering) {
      gathering.reports.push(report);
      return gathering.written;
    }
    const reports = [report];
    const before = this.#writing.get(executionId) ?? Promise.resolve();
    const written = before.then(() => {
      this.#gathering.delete(executionId);
      return this.#write(executionId, reports);
    });
    this.#gathering.set(executionId, { reports, written });
    this.#writing.set(executionId, written);
    void written.then(() => {
      if (this.#writing.get(executionId) === written) this.#writing.delete(executionId);
    });
    return written;
  }

  /** Resolves when all reports are written. */
  async flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    while (this.#writing.size > 0) await Promise.all(this.#writing.values());
  }

  #now(): number {
    return this.#options.clock.now();
  }

  async #tellStarts(): Promise<void> {
    const { store, log, onLost } = this.#options;
    for (const [executionId, starts] of this.#starts) {
      const untold = [...starts.values()].filter(({ told }) => !told);
      if (untold.length === 0) continue;
      try {
        const ours = await store.executions.started(executionId, untold);
        for (const start of untold) {
          start.told = true;
          // Told of its end meanwhile, it is nobody's either.
          if (!ours.has(start.index) && starts.has(start.workload)) onLost(start.workload);
        }
      } catch (error) {
        log.warn({ err: error, execution: executionId }, "the start of tasks is not recorded yet");
      }
    }
    const more = [...this.#starts.values()].some((starts) => [...starts.values()].some(({ told }) => !told));
    this.#timer = more ? setTimeout(() => void this.#tellStarts(), START_TOLD_MS).unref() : null;
  }

  /** Failed writes are retried. When the server stops first, the expired lease shows that the task is lost. */
  async #write(executionId: string, reports: readonly TaskReport[]): Promise<void> {
    const { store, log, rules, stopping } = this.#options;
    for (;;) {
      try {
        const next = this.#options.next(executionId, reports.length);
        if (!next) await store.executions.report(executionId, reports, rules);
        else next.launch(await store.executions.turn(executionId, reports, rules, next.wish));
        return;
      } catch (error) {
        log.warn({ err: error, execution: executionId }, "the end of a task is not recorded yet");
        if (stopping.aborted) return;
        await delay(REPORT_AGAIN_MS, undefined, { signal: stopping, ref: false }).catch(() => {});
      }
    }
  }
}
