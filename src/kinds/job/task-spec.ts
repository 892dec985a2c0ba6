/** From a task to what the driver is asked for: the contract between the platform and the program of a job. */
import { PlatformError } from "../../contract/errors.ts";
import { restoreSecrets } from "../../contract/secret-fields.ts";
import type { Exec, WorkloadSpec } from "../../runtime/driver.ts";
import type { ExecutionRow, TaskClaim } from "../../store/execution.ts";
import type { Resource } from "../../store/resource.ts";
import { driverImage } from "../image/resolve.ts";
import type { Deps } from "../port.ts";
import { identityEnv, taskCopy } from "../workload/identity.ts";
import { logTag } from "../workload/log-tag.ts";
import { platformEnv } from "../workload/platform-env.ts";
import { dataPath } from "./execution-data.ts";
import { job as jobKind } from "./kind.ts";

/** A core for this much memory. */
const MEMORY_PER_CPU_MB = 2048;
const CPUS_MIN = 0.25;
/** Names of the variables that tell a task which one it is; libraries look them up. */
const INDEX_VARIABLE = "TASK_INDEX";
const EXECUTION_VARIABLE = "BL_EXECUTION_ID";

interface JobRuntime {
  image?: string;
  command?: string[];
  envs?: { name: string; value?: string }[];
}

interface TaskCommand {
  image: string;
  exec: Exec;
}

interface ScratchDisk {
  mountPath: string;
  sizeMb: number;
  readOnly?: boolean;
}

/** What runs for a task of this revision. */
export function taskCommand(job: Resource, _revision: string): TaskCommand {
  const { image, command = [] } = (job.spec.runtime ?? {}) as JobRuntime;
  if (!image)
    throw new PlatformError(
      "conflict",
      `Job '${job.name}' has nothing to run yet: set spec.runtime.image, and spec.runtime.command unless the image has an entry point.`,
    );
  return { image, exec: { argv: command, onExit: "exit" } };
}

export async function taskSpec(
  claim: TaskClaim,
  execution: ExecutionRow,
  job: Resource,
  deps: Deps,
): Promise<WorkloadSpec> {
  const spec = structuredClone(job.spec);
  restoreSecrets({ spec }, jobKind.secrets, deps.store.resources.secretsOf(job));
  const { envs = [] } = (spec.runtime ?? {}) as JobRuntime;
  const memoryMb = execution.memory_override ?? execution.memory_mb;
  const platform = platformEnv(job, deps.settings);
  const { image, exec } = taskCommand(job, execution.revision);
  return {
    uid: claim.workload,
    name: job.name,
    image: await driverImage(image, job, deps),
    // Once its lease is over another machine may run it, so by then it has ended here whatever became of this server.
    exec: { ...exec, endsAtMs: claim.leaseUntil },
    env: {
      ...Object.fromEntries(envs.map(({ name, value = "" }) => [name, value])),
      ...deps.store.executions.envOf(execution),
      ...platform,
      ...(await identityEnv(job, taskCopy(execution.id, claim.index, claim.workload), deps)),
      BL_EXECUTION_DATA_URL: `${platform.BL_API_URL}${dataPath(deps, { ...claim, job: job.name })}`,
      BL_TASK_KEY: INDEX_VARIABLE,
      [INDEX_VARIABLE]: String(claim.index),
      BL_EXECUTION_KEY: EXECUTION_VARIABLE,
      [EXECUTION_VARIABLE]: execution.id,
    },
    limits: { memoryMb, cpus: Math.max(memoryMb / MEMORY_PER_CPU_MB, CPUS_MIN) },
    mounts: scratchDisks(job).map(({ mountPath, readOnly = false }, index) => ({
      source: { volume: scratchOf(claim.workload, index) },
      path: mountPath,
      readOnly,
    })),
    network: "outbound",
    log: logTag(job, "run", {
      revision: execution.revision,
      executionId: execution.id,
      taskId: String(claim.index),
    }),
  };
}

export const scratchDisks = (job: Resource): ScratchDisk[] => (job.spec.volumes ?? []) as ScratchDisk[];

/** A scratch disk lives as long as one attempt. */
export const scratchOf = (workload: string, index: number): string => `${workload}-scratch-${index}`;
