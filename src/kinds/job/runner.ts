/** Runs one attempt of one task in a workload of its own, and removes the workload afterwards. */

import { PlatformError } from "../../contract/errors.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import { need } from "../../node/capabilities/need.ts";
import type { Observed } from "../../node/workload.ts";
import type { ExecutionRow, TaskClaim, TaskOutcome } from "../../store/executions/execution.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { leavesDrained } from "../node/drain.ts";
import { targetFor } from "../node/move.ts";
import type { Deps } from "../port.ts";
import { stateOf } from "../workload/deploy-state.ts";
import { scratchDisks, scratchOf, type TaskKind, taskKind, taskSpec } from "./task-spec.ts";

/** Longest delay of a Node.js timer, about 24 days. */
const TIMER_MAX_MS = 2 ** 31 - 1;
const KIND_KEPT_MS = SECOND_MS;
/** Bytes from the end of a task's output that are quoted in the reason of its failure. */
const TAIL_BYTES = 1024;

export interface NodeTaskRunner {
  /** `onStart` is called once the task's process runs. */
  run(
    claim: TaskClaim,
    execution: ExecutionRow,
    options: { signal: AbortSignal; onStart(): void },
  ): Promise<TaskOutcome>;
  /** Tells the driver that the lease of an attempt was renewed. */
  prolong(workload: string, leaseUntil: number): Promise<void>;
  /** Ends the processes and removes the disks that an attempt left on this machine. */
  discard(workload: string): Promise<void>;
  canRun(jobUid: string): Promise<boolean>;
}

export function createTaskRunner(deps: Deps): NodeTaskRunner {
  const { driver, store } = deps;
  const metered = createMemoryMeter(deps);
  const runnable = new Map<string, { untilMs: number; here: boolean }>();
  const kinds = new Map<string, { untilMs: number; kind: Promise<TaskKind> }>();

  /**
   * Cached for a second, because many tasks of an execution start together. Then read again: the job may have changed.
   */
  function kindOf(execution: ExecutionRow, job: Resource): Promise<TaskKind> {
    const now = deps.clock.now();
    const known = kinds.get(execution.id);
    if (known && known.untilMs > now) return known.kind;
    for (const [id, { untilMs }] of kinds) if (untilMs <= now) kinds.delete(id);
    const kind = taskKind(execution, job, deps);
    kinds.set(execution.id, { untilMs: now + KIND_KEPT_MS, kind });
    kind.catch(() => kinds.delete(execution.id)); // the caller awaits `kind` and gets the error
    return kind;
  }

  async function discard(workload: string): Promise<void> {
    await driver.destroy(workload);
    const volumes = await driver.capability("volumes");
    if (volumes === null) return;
    let disks = 0;
    while (await volumes.observe(scratchOf(workload, disks))) disks += 1;
    // Disk 0 goes last: the search above starts at 0, so a repeated discard still finds the rest.
    while (disks > 0) await volumes.destroy(scratchOf(workload, --disks));
  }

  async function attempt(
    claim: TaskClaim,
    execution: ExecutionRow,
    job: Resource,
    { signal, onStart }: { signal: AbortSignal; onStart(): void },
  ): Promise<TaskOutcome> {
    const kind = await kindOf(execution, job);
    for (const [index, { sizeMb }] of scratchDisks(kind.runnable.revision).entries())
      await (await need(driver, "volumes")).create({ id: scratchOf(claim.workload, index), sizeMb });
    deps.egress.watch(claim.workload, job);
    await driver.create(await taskSpec(claim, kind, deps), { signal });
    // The lease may have been renewed while the workload was starting.
    await driver.prolong(claim.workload, claim.leaseUntil);
    onStart();
    const timeout =
      execution.timeout_s === 0 ? null : AbortSignal.timeout(Math.min(execution.timeout_s * SECOND_MS, TIMER_MAX_MS));
    try {
      const ended = await driver.waitExit(claim.workload, {
        signal: timeout ? AbortSignal.any([signal, timeout]) : signal,
      });
      return await outcomeOf(ended, deps);
    } catch (error) {
      if (!timeout?.aborted || signal.aborted) throw error;
      const wrote = await tailOf(claim.workload, deps);
      await driver.destroy(claim.workload, { graceMs: deps.settings.jobGraceMs });
      const message = `It was ended after ${execution.timeout_s} s, its time limit.${wrote}`;
      return { result: "failed", exitCode: null, reason: "Timeout", message, timedOut: true };
    }
  }

  return {
    discard,
    /** A node has the code of its own jobs only. An image is the same everywhere. */
    async canRun(jobUid) {
      if (store.database.dialect === "sqlite") return true;
      const now = deps.clock.now();
      for (const [uid, { untilMs }] of runnable) if (untilMs <= now) runnable.delete(uid);
      const known = runnable.get(jobUid);
      if (known) return known.here;
      const job = await store.resources.getAcrossWorkspaces(jobUid);
      const here = !job || isRunHere(job, deps);
      runnable.set(jobUid, { here, untilMs: now + KIND_KEPT_MS });
      return here;
    },
    prolong: (workload, leaseUntil) => driver.prolong(workload, leaseUntil),
    async run(claim, execution, options) {
      const job = await store.resources.getAcrossWorkspaces(execution.job_uid);
      if (!job || job.retired)
        return { result: "failed", exitCode: null, reason: "JobGone", message: "The job was deleted." };
      const memoryMb = execution.memory_override ?? execution.memory_mb;
      if (claim.previousWorkload !== null) await discard(claim.previousWorkload);
      metered.add(job, memoryMb);
      try {
        return await attempt(claim, execution, job, options);
      } catch (error) {
        if (options.signal.aborted) return { result: "lost", message: "The server that ran it was stopped." };
        return { result: "failed", exitCode: null, reason: "StartFailed", message: sentenceOf(error, deps) };
      } finally {
        // Leftovers are discarded again before the next attempt starts.
        await discard(claim.workload).catch((error: unknown) =>
          deps.log.warn({ err: error, workload: claim.workload }, "a task left something behind"),
        );
        metered.add(job, -memoryMb);
      }
    },
  };
}

/** A drained node runs only tasks that have to be on it, as long as another node takes the others. */
function isRunHere(job: Resource, deps: Deps): boolean {
  const { nodes } = deps;
  const isOwn = nodes.owns(job.node);
  const isBound = job.node !== null && isOwn && !leavesDrained(job);
  if (nodes.self.drained && !isBound && targetFor(job, deps) !== null) return false;
  return isOwn || Object.keys(stateOf(job).revisions ?? {}).length === 0;
}

async function outcomeOf(ended: Observed | null, deps: Deps): Promise<TaskOutcome> {
  if (!ended) return { result: "lost", message: "Its workload was removed while it ran." };
  const { uid, oom, exitSignal } = ended;
  const exitCode = ended.exitCode ?? null;
  if (exitCode === 0) return { result: "succeeded" };
  if (ended.endedBy === "machine") return { result: "lost", message: "The machine that ran it was taken away." };
  const wrote = await tailOf(uid, deps);
  if (oom)
    return {
      result: "failed",
      exitCode,
      reason: "OutOfMemory",
      message: `It needed more than its ${ended.limits.memoryMb} MB of memory.${wrote}`,
    };
  if (exitCode === null)
    return { result: "failed", exitCode, reason: "Signal", message: `Ended by ${exitSignal ?? "a signal"}.${wrote}` };
  return { result: "failed", exitCode, reason: "Error", message: `Ended with exit code ${exitCode}.${wrote}` };
}

/** The end of the task's error stream, which usually names the cause. */
async function tailOf(uid: string, { driver }: Deps): Promise<string> {
  try {
    const { size } = await driver.readOutput(uid, "stderr", 0, 1);
    const { bytes } = await driver.readOutput(uid, "stderr", Math.max(size - TAIL_BYTES, 0), TAIL_BYTES);
    const text = bytes.toString("utf8").replaceAll("\0", "").trim();
    return text === "" ? "" : ` Its last words: ${text}`;
  } catch {
    return "";
  }
}

function sentenceOf(error: unknown, { log }: Deps): string {
  if (error instanceof PlatformError && error.code !== "internal") return error.message;
  log.warn({ err: error }, "a task could not be started");
  return "It could not be started; the server's log says why.";
}

/** Meters the memory that the tasks of each job use on this node. */
function createMemoryMeter({ store, meter, log }: Deps) {
  const totals = new Map<string, number>();
  return {
    add({ uid, workspace, name }: Resource, memoryMb: number): void {
      const total = (totals.get(uid) ?? 0) + memoryMb;
      if (total === 0) totals.delete(uid);
      else totals.set(uid, total);
      const tell = async (): Promise<void> => {
        const account = await store.workspaces.get(workspace);
        if (!account) return;
        const metered = { accountId: account.accountId, workspace, name, uuid: uid };
        await meter.setRate(metered, "job_compute_runtime_gbs", totals.get(uid) ?? 0);
      };
      tell().catch((error: unknown) => log.warn({ err: error }, "the memory of a task could not be metered"));
    },
  };
}
