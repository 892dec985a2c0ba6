/**
 * Starts job tasks on this machine and keeps the queue in step with them. Every server has a scheduler; each claims
 * tasks from the common queue under a lease.
 *
 * An expired lease means that its server died or cannot reach the database. Its tasks may still run on its machine, so
 * that server ends them first when it restarts; another machine takes a task over only some leases later. By then the
 * task has ended: the driver ends a task at the end of its lease unless the lease is renewed.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../kinds/port.ts";
import type { Running } from "../lib/lifecycle.ts";
import { type Clock, SECOND_MS } from "../lib/time/clock.ts";
import {
  type ExecutionRow,
  JOB_SLOTS_RECORDS,
  type TaskClaim,
  type TaskOutcome,
  type TaskRow,
} from "../store/executions/execution.ts";
import type { Claimable } from "../store/executions/views.ts";
import type { Store } from "../store/store.ts";
import { type Capacity, chooseStarts, type JobCandidate, type RunningTask } from "./fair-choice.ts";
import { type Next, REPORT_AGAIN_MS, TaskReports } from "./task-reports.ts";

/** Leases are renewed at this share of their length: two renewals may fail. */
const RENEW_SHARE = 1 / 3;
/** Additional leases to wait before taking over a task of another machine; covers clock differences. */
const ELSEWHERE_LEASES = 2;
/** Poll interval: due retries and free slots of other servers are not announced. */
const LOOK_MS = SECOND_MS;
const CANDIDATES_MAX = 1000;
/** Only shorter tasks are claimed before a slot is free: another server might have room for longer ones. */
const SHORT_TASK_MS = SECOND_MS / 2;
const REAP_PAGE = 1000;
/** Between attempts of one task: doubles with every failure up to a minute. */
const RETRY_MIN_MS = SECOND_MS;
const RETRY_MAX_MS = 60 * SECOND_MS;

export interface TaskRunner {
  run(
    claim: TaskClaim,
    execution: ExecutionRow,
    options: { signal: AbortSignal; onStart(): void },
  ): Promise<TaskOutcome>;
  prolong(workload: string, leaseUntil: number): Promise<void>;
  discard(workload: string): Promise<void>;
  /** Whether tasks of this job can run on this machine. */
  canRun(jobUid: string): Promise<boolean>;
}

export interface JobSchedulerOptions {
  store: Store;
  runner: TaskRunner;
  capacity: Capacity;
  clock: Clock;
  log: Log;
  /** Id of this machine and data folder, the same after a restart of the server. */
  place: string;
  /** Lease of a task. */
  leaseMs: number;
  /** How long an execution is kept after its end. */
  keepMs: number;
}

interface Started extends RunningTask {
  claim: TaskClaim;
  abort: AbortController;
  work: Promise<void>;
}

export async function startJobScheduler(options: JobSchedulerOptions): Promise<Running> {
  const scheduler = new JobScheduler(options);
  await scheduler.start();
  return scheduler;
}

class JobScheduler implements Running {
  readonly #options: JobSchedulerOptions;
  readonly #holder: string;
  readonly #started = new Map<string, Started>();
  readonly #stopping = new AbortController();
  readonly #reports: TaskReports;
  #cleanUp: (() => void)[] = [];
  /** Tasks claimed ahead of a free slot, where tasks are short. */
  #ahead: { claim: TaskClaim; execution: ExecutionRow }[] = [];
  /** Average duration of an execution's tasks on this server. */
  #pace = { executionId: "", ms: Number.POSITIVE_INFINITY };
  /** The only execution with tasks to start at the last poll; null when there may be others. */
  #sole: ExecutionRow | null = null;
  #looking: Promise<void> | null = null;
  #lookAgain = false;

  constructor(options: JobSchedulerOptions) {
    this.#options = options;
    this.#holder = `${options.place}/${process.pid}/${options.clock.now()}`;
    this.#reports = new TaskReports({
      ...options,
      rules: { retryAfterMs: retryPause, keepMs: options.keepMs },
      stopping: this.#stopping.signal,
      next: (executionId, ended) => this.#next(executionId, ended),
      onLost: (workload) => this.#started.get(workload)?.abort.abort(),
    });
  }

  async start(): Promise<void> {
    await this.#endEarlierLife();
    await this.#offer(this.#options.capacity.slots);
    const { executions } = this.#options.store;
    const look = setInterval(() => this.#lookAtAll(), LOOK_MS).unref();
    const renew = setInterval(() => void this.#renew(), this.#options.leaseMs * RENEW_SHARE).unref();
    this.#cleanUp = [
      () => clearInterval(look),
      () => clearInterval(renew),
      executions.onChange((id) => (id === this.#sole?.id ? this.#look() : this.#lookAtAll())),
    ];
    this.#look();
  }

  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    for (const undo of this.#cleanUp) undo();
    await this.#looking;
    for (const { abort } of this.#started.values()) abort.abort();
    const unbegun = { result: "lost", message: "Its server was stopped before it began." } as const;
    for (const { claim } of this.#ahead.splice(0)) void this.#reports.ended(claim, unbegun);
    await Promise.all([...this.#started.values()].map(({ work }) => work));
    await this.#reports.flush();
    await this.#offer(0).catch((error: unknown) =>
      this.#options.log.warn({ err: error }, "others will count on this server a little longer"),
    );
  }

  /** Publishes the number of this server's slots for as long as it lives. */
  async #offer(slots: number): Promise<void> {
    const { store, clock, place, leaseMs } = this.#options;
    await store.records.update(`${JOB_SLOTS_RECORDS}${place}`, clock.now() + leaseMs, () => ({
      value: String(slots),
      result: undefined,
    }));
  }

  /** Forgets `#sole`, because other executions may have tasks now. */
  #lookAtAll(): void {
    this.#sole = null;
    this.#look();
  }

  /** Polls once at a time; a request during a poll causes another one afterwards. */
  #look(): void {
    this.#lookAgain = true;
    if (this.#looking || this.#stopping.signal.aborted) return;
    this.#looking = this.#lookUntilQuiet().finally(() => {
      this.#looking = null;
      if (this.#lookAgain) this.#look();
    });
  }

  async #lookUntilQuiet(): Promise<void> {
    while (this.#lookAgain && !this.#stopping.signal.aborted) {
      this.#lookAgain = false;
      try {
        await this.#startWhatFits();
      } catch (error) {
        this.#options.log.warn({ err: error }, "the queue of jobs could not be read, trying again");
        return;
      }
    }
  }

  async #startWhatFits(): Promise<void> {
    const { store, capacity, leaseMs } = this.#options;
    if (this.#started.size >= capacity.slots) return;
    const waiting = await this.#runnableHere(await store.executions.listClaimableAcrossWorkspaces(CANDIDATES_MAX));
    if (waiting.length === 0) return;
    const chosen = chooseStarts(waiting.map(toCandidate), [...this.#started.values()], capacity);
    for (const [id, starts] of Map.groupBy(chosen, (each) => each)) {
      if (this.#stopping.signal.aborted) return;
      const execution = await store.executions.getAcrossWorkspaces(id);
      if (!execution || (await this.#cancelOrphan(execution))) continue;
      this.#sole = waiting.length === 1 ? execution : null;
      const count = starts.length + (this.#sole ? this.#roomAhead(id) : 0);
      const claims = await store.executions.claim(id, this.#holder, leaseMs, count);
      for (const claim of claims) this.#ahead.push({ claim, execution });
      this.#launchAhead();
    }
  }

  /** Without the executions of jobs that another node has to run. */
  async #runnableHere(waiting: readonly Claimable[]): Promise<Claimable[]> {
    const jobs = new Set<string>();
    for (const jobUid of new Set(waiting.map((each) => each.job_uid)))
      if (await this.#options.runner.canRun(jobUid)) jobs.add(jobUid);
    return waiting.filter((each) => jobs.has(each.job_uid));
  }

  /** Cancels an execution whose job no longer exists. */
  async #cancelOrphan({ id, workspace, job_uid: jobUid }: ExecutionRow): Promise<boolean> {
    const { store, keepMs } = this.#options;
    if (await this.#isLive(jobUid)) return false;
    await store.executions.cancel(workspace, id, keepMs);
    return true;
  }

  #launch(claim: TaskClaim, execution: ExecutionRow): void {
    const abort = new AbortController();
    const begunMs = this.#options.clock.now();
    const work = this.#perform(claim, execution, abort.signal).finally(() => {
      this.#started.delete(claim.workload);
      this.#keepPace(execution.id, this.#options.clock.now() - begunMs);
      this.#launchAhead();
      this.#look();
    });
    this.#started.set(claim.workload, {
      claim,
      workspace: execution.workspace,
      jobUid: execution.job_uid,
      memoryMb: memoryOf(execution),
      abort,
      work,
    });
  }

  async #perform(claim: TaskClaim, execution: ExecutionRow, signal: AbortSignal): Promise<void> {
    const { runner, log, clock } = this.#options;
    let outcome: TaskOutcome;
    try {
      outcome = await runner.run(claim, execution, { signal, onStart: () => this.#reports.started(claim) });
    } catch (error) {
      log.warn(
        { err: error, execution: claim.executionId, task: claim.index },
        "a task could not be run, trying again",
      );
      await this.#pause(REPORT_AGAIN_MS);
      outcome = { result: "lost", message: "The machine could not make room for it." };
    }
    // A task that outlived its lease was ended by the driver, so its failure counts as a lost lease.
    if (outcome.result === "failed" && clock.now() > claim.leaseUntil)
      outcome = { result: "lost", message: "Its lease was not renewed in time." };
    // The task has ended: its slot is free while the result is written.
    void this.#reports.ended(claim, outcome).then(() => this.#look());
  }

  /** Starts the claimed tasks that fit now. */
  #launchAhead(): void {
    const { capacity } = this.#options;
    const taken = (): number => [...this.#started.values()].reduce((sum, { memoryMb }) => sum + memoryMb, 0);
    for (let [next] = this.#ahead; next && !this.#stopping.signal.aborted; [next] = this.#ahead) {
      const { claim, execution } = next;
      const fits = this.#started.size === 0 || taken() + memoryOf(execution) <= capacity.memoryMb;
      if (this.#started.size >= capacity.slots || !fits) return;
      this.#ahead.shift();
      this.#launch(claim, execution);
    }
  }

  /** How many tasks to claim beyond the free slots. Only for short tasks, whose slots free up before the next poll. */
  #roomAhead(executionId: string): number {
    if (this.#pace.executionId !== executionId || this.#pace.ms > SHORT_TASK_MS) return 0;
    return Math.max(0, this.#options.capacity.slots - this.#ahead.length);
  }

  #keepPace(executionId: string, ms: number): void {
    const known = this.#pace.executionId === executionId;
    this.#pace = { executionId, ms: known ? (this.#pace.ms * 7 + ms) / 8 : ms };
  }

  /** When no other execution waits, a finished task lets the next one of its execution start without a poll. */
  #next(executionId: string, ended: number): Next | null {
    const { capacity, leaseMs } = this.#options;
    const execution = this.#sole;
    if (execution?.id !== executionId || this.#stopping.signal.aborted) return null;
    const count = Math.max(0, Math.min(ended, capacity.slots - this.#started.size)) + this.#roomAhead(executionId);
    if (count === 0) return null;
    return {
      wish: { holder: this.#holder, leaseMs, count },
      launch: (claims) => {
        for (const claim of claims) this.#ahead.push({ claim, execution });
        this.#launchAhead();
      },
    };
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => {});
  }

  async #renew(): Promise<void> {
    const { store, runner, leaseMs, log, clock } = this.#options;
    for (const { claim, abort } of this.#started.values()) if (clock.now() > claim.leaseUntil) abort.abort();
    this.#ahead = this.#ahead.filter(({ claim }) => clock.now() <= claim.leaseUntil);
    try {
      const leaseUntil = await store.executions.renew(this.#holder, leaseMs);
      for (const { claim } of this.#ahead) claim.leaseUntil = Math.max(claim.leaseUntil, leaseUntil);
      for (const { claim, abort } of this.#started.values()) {
        if (abort.signal.aborted) continue;
        claim.leaseUntil = Math.max(claim.leaseUntil, leaseUntil);
        await runner.prolong(claim.workload, claim.leaseUntil);
      }
      await this.#offer(this.#options.capacity.slots);
      await this.#endOrphans();
      await this.#reap();
    } catch (error) {
      log.warn({ err: error }, "the leases of tasks could not be renewed, trying again");
    }
  }

  /** Ends tasks of jobs that were deleted meanwhile. */
  async #endOrphans(): Promise<void> {
    const running = [...this.#started.values()];
    for (const jobUid of new Set(running.map((task) => task.jobUid)))
      if (!(await this.#isLive(jobUid)))
        for (const { abort } of running.filter((task) => task.jobUid === jobUid)) abort.abort();
  }

  async #isLive(jobUid: string): Promise<boolean> {
    const job = await this.#options.store.resources.getAcrossWorkspaces(jobUid);
    return job !== null && job.deletedAt === null && !job.retired;
  }

  async #reap(): Promise<void> {
    const { store, place, clock, leaseMs } = this.#options;
    for (const task of await store.executions.listExpiredLeases(REAP_PAGE)) {
      if (this.#started.has(task.workload)) continue;
      const here = placeOf(task.holder) === place;
      if (here || clock.now() - task.lease_until > ELSEWHERE_LEASES * leaseMs)
        await this.#giveBack(task, here, "Its server was not heard of any more.");
    }
  }

  /** Ends tasks that an earlier process of this server left running. */
  async #endEarlierLife(): Promise<void> {
    const { store, place } = this.#options;
    for (const task of await store.executions.listRunningOfHolders(`${place}/`, this.#holder)) {
      if (placeOf(task.holder) === place && !isAlive(task.holder))
        await this.#giveBack(task, true, "The server was started anew while it ran.");
    }
  }

  async #giveBack(task: TaskRow, here: boolean, message: string): Promise<void> {
    if (here) await this.#options.runner.discard(task.workload);
    const { execution_id: executionId, idx: index, attempt } = task;
    await this.#reports.report(executionId, { index, attempt, outcome: { result: "lost", message } });
  }
}

const toCandidate = (row: Claimable): JobCandidate => ({
  executionId: row.id,
  workspace: row.workspace,
  jobUid: row.job_uid,
  memoryMb: row.memory_mb,
  room: Math.min(row.parallelism - row.running, row.waiting),
  jobRoom: row.parallelism - row.job_running,
});

const retryPause = (failures: number): number => Math.min(RETRY_MIN_MS * 2 ** (failures - 1), RETRY_MAX_MS);

const memoryOf = (row: ExecutionRow): number => row.memory_override ?? row.memory_mb;

/** A holder is `{place}/{pid}/{when}`. */
const placeOf = (holder: string): string => holder.split("/").slice(0, -2).join("/");

/** Two servers may share a place for a moment, while one replaces the other. */
function isAlive(holder: string): boolean {
  const pid = Number(holder.split("/").at(-2));
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
