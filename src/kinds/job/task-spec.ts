/** Builds the driver's workload spec for a task: the contract between the platform and the program of a job. */
import { plainPath } from "../../contract/mount-path.ts";
import { restoreSecrets } from "../../contract/secret-fields.ts";
import type { WorkloadSpec } from "../../node/workload.ts";
import type { ExecutionRow, TaskClaim } from "../../store/executions/execution.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { type StartImage, startImage } from "../image/pull.ts";
import type { Deps } from "../port.ts";
import { baseImage, codeEnv, withArguments } from "../workload/bundle.ts";
import { accountOf, credentialsOf, taskCopy } from "../workload/identity.ts";
import { limitsFor } from "../workload/limits.ts";
import { logTag } from "../workload/log-tag.ts";
import { platformEnv, usualEnv } from "../workload/platform-env.ts";
import { CODE_PATH } from "../workload/start-command.ts";
import { trustOf } from "../workload/trust.ts";
import { dataPath } from "./execution-data.ts";
import { job as jobKind } from "./kind.ts";
import { type JobRevision, type Runnable, runnableOf } from "./runnable.ts";

/** Names of the variables that hold a task's index and execution id. Client libraries look them up. */
const INDEX_VARIABLE = "TASK_INDEX";
const EXECUTION_VARIABLE = "BL_EXECUTION_ID";

/** Arguments above this size do not fit a command line; the task reads them from its data URL. */
const ARGUMENTS_BYTES_MAX = 64 * 1024;

/** What all tasks of an execution share. */
export interface TaskKind {
  job: Resource;
  execution: ExecutionRow;
  runnable: Runnable;
  image: Pick<StartImage, "loaded" | "pull">;
  env: Record<string, string>;
  /** Id of the job's own service account. */
  account: string;
  trust: Awaited<ReturnType<typeof trustOf>>;
}

export async function taskKind(execution: ExecutionRow, job: Resource, deps: Deps): Promise<TaskKind> {
  const runnable = await runnableOf(job, deps, execution.revision);
  const spec = structuredClone(runnable.revision.spec);
  restoreSecrets({ spec }, jobKind.secrets, deps.store.resources.secretsOf(runnable.revision));
  const { envs = [], dockerConfig } = spec.runtime ?? {};
  const { image, imagePullPolicy: policy } = runnable.runtime;
  const trust = await trustOf(job, deps);
  return {
    job,
    execution,
    runnable,
    image: image
      ? await startImage(image, job, deps, { policy, dockerConfig })
      : { loaded: runnable.bundle?.image ?? baseImage(deps) },
    env: {
      ...(runnable.bundle?.drive ? codeEnv : {}),
      ...usualEnv(job, deps.settings),
      ...trust.env,
      ...Object.fromEntries(envs.map(({ name, value = "" }) => [name, value])),
      ...deps.store.executions.envOf(execution),
      ...platformEnv(job, deps.settings),
    },
    account: await accountOf(job, deps),
    trust,
  };
}

export async function taskSpec(claim: TaskClaim, kind: TaskKind, deps: Deps): Promise<WorkloadSpec> {
  const { job, execution, image, env, account } = kind;
  const { revision, runtime, bundle } = kind.runnable;
  const memoryMb = execution.memory_override ?? execution.memory_mb;
  const argv = bundle?.drive ? withArguments(bundle, await argumentsOf(claim, deps)) : (runtime.command ?? []);
  return {
    uid: claim.workload,
    name: job.name,
    image: image.loaded,
    ...(image.pull ? { pull: image.pull } : {}),
    // After the lease another machine may run the task, so the driver ends it here by then even if this server died.
    exec: { argv, alone: true, onExit: "exit", endsAtMs: claim.leaseUntil },
    env: {
      ...env,
      ...credentialsOf(account, taskCopy(execution.id, claim.index, claim.workload), deps),
      BL_EXECUTION_DATA_URL: `${env.BL_API_URL}${dataPath(deps, { ...claim, job: job.name })}`,
      BL_TASK_KEY: INDEX_VARIABLE,
      [INDEX_VARIABLE]: String(claim.index),
      BL_EXECUTION_KEY: EXECUTION_VARIABLE,
      [EXECUTION_VARIABLE]: execution.id,
    },
    ...(bundle?.drive ? { workDir: CODE_PATH } : {}),
    limits: limitsFor(memoryMb),
    mounts: [
      ...(bundle?.drive ? [{ source: { drive: bundle.drive }, path: CODE_PATH, readOnly: true }] : []),
      ...kind.trust.mounts,
      ...scratchDisks(revision).map(({ mountPath, readOnly = false }, index) => ({
        source: { volume: scratchOf(claim.workload, index) },
        path: plainPath(mountPath),
        readOnly,
      })),
    ],
    network: "outbound",
    log: logTag(job, "run", {
      revision: execution.revision,
      executionId: execution.id,
      taskId: String(claim.index),
    }),
  };
}

/** `--key value` for each argument of a task, for programs that do not use the platform's libraries. */
async function argumentsOf({ executionId, index }: TaskClaim, { store }: Deps): Promise<string[]> {
  const [task = {}] = await store.executions.argumentsOf(executionId, index, 1);
  const words = Object.entries(task)
    .filter(([key]) => /^[\w.-]+$/.test(key))
    .flatMap(([key, value]) => [`--${key}`, typeof value === "string" ? value : JSON.stringify(value)]);
  const fits = words.reduce((sum, word) => sum + Buffer.byteLength(word), 0) <= ARGUMENTS_BYTES_MAX;
  return fits && !words.some((word) => word.includes("\0")) ? words : [];
}

export const scratchDisks = ({ spec }: Pick<JobRevision, "spec">) => spec.volumes ?? [];

/** A scratch disk lives as long as one attempt. */
export const scratchOf = (workload: string, index: number): string => `${workload}-scratch-${index}`;
