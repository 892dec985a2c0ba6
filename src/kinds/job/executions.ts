/** Creates executions of jobs, for clients and for triggers. */
import { invalidField, PlatformError } from "../../contract/errors.ts";
import { type ExecutionRow, JOB_SLOTS_RECORDS } from "../../store/executions/execution.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { requirePlaced } from "../policy/placement.ts";
import type { Platform } from "../port.ts";
import { preparedEnvs } from "../workload/envs.ts";
import { MEMORY_DEFAULT_MB } from "../workload/spec.ts";
import { type JobRuntime, runnableOf } from "./runnable.ts";
import { takeTurn, trialOf } from "./trial.ts";

/** Tasks that run at a time when the job does not set `maxConcurrentTasks`. */
const PARALLELISM_DEFAULT = 10;
/** Timeout of a task in seconds when the job does not set one. */
const TIMEOUT_DEFAULT_SECONDS = 3600;

export interface ExecutionRequest {
  tasks: readonly Record<string, unknown>[];
  env?: Record<string, string> | undefined;
  memory?: number | undefined;
  allowQueue?: boolean | undefined;
  /** Overrides the job's own value. */
  maxRetries?: number | undefined;
  timeoutS?: number | undefined;
  slot: string | null;
  cause: string;
  createdBy: string;
}

export async function createExecution(job: Resource, request: ExecutionRequest, deps: Platform): Promise<ExecutionRow> {
  const { env = {}, memory, slot } = request;
  if (job.spec.enabled === false)
    throw new PlatformError("conflict", `Job '${job.name}' is switched off: its spec.enabled is false.`);
  await requirePlaced(job, deps);
  const active = await runnableOf(job, deps);
  const trial = await trialOf(job, active, deps);
  // Checks the active revision and the canary, so that a refusal does not depend on which of them is due.
  const both = [active, ...(trial ? [trial.canary] : [])].map(({ runtime }) => runtime);
  const memoryMb = Math.min(...both.map(memoryOf));
  if (memory !== undefined && memory > memoryMb)
    throw invalidField("memory", `must not be above the job's own, which is ${memoryMb} MB`);
  preparedEnvs(
    Object.keys(env).map((name) => ({ name })),
    "env",
  );
  const known = slot === null ? null : await deps.store.executions.getBySlot(job.workspace, slot);
  if (known) return known;
  if (request.allowQueue === false)
    await refuseWaiting(job, Math.min(...both.map(parallelismOf)), request.tasks.length, deps);
  const { revision, runtime } = trial ? await takeTurn(job, trial, deps) : active;
  return deps.store.executions.create({
    workspace: job.workspace,
    jobUid: job.uid,
    job: job.name,
    tasks: request.tasks,
    parallelism: parallelismOf(runtime),
    maxRetries: request.maxRetries ?? runtime.maxRetries ?? 0,
    timeoutS: request.timeoutS ?? runtime.timeout ?? TIMEOUT_DEFAULT_SECONDS,
    memoryMb: memoryOf(runtime),
    memoryOverride: memory ?? null,
    env,
    revision: revision.id,
    slot,
    cause: request.cause,
    createdBy: request.createdBy,
  });
}

const memoryOf = ({ memory = MEMORY_DEFAULT_MB }: JobRuntime): number => memory;

const parallelismOf = ({ maxConcurrentTasks }: JobRuntime): number => maxConcurrentTasks ?? PARALLELISM_DEFAULT;

/** Refuses the execution unless at least one task can start at once. */
async function refuseWaiting(job: Resource, parallelism: number, tasks: number, deps: Platform): Promise<void> {
  const { executions, records } = deps.store;
  const [load, servers] = await Promise.all([executions.loadOf(job.uid), records.list(JOB_SLOTS_RECORDS)]);
  const slots = servers.reduce((sum, each) => sum + Number(each), 0);
  const free = Math.min(parallelism - load.jobRunning - load.jobWaiting, slots - load.running);
  if (free > 0) return;
  throw new PlatformError(
    "too_many_requests",
    `The ${tasks} task(s) would have to wait: job '${job.name}' is at its capacity. Try again later, or leave allowQueue out.`,
    { headers: { "retry-after": "5" } },
  );
}
