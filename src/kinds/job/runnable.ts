/** What a task runs: which revision of its job, from an image or from code that was built. */
import { PlatformError } from "../../contract/errors.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Revision } from "../../store/resources/revision.ts";
import type { Platform } from "../port.ts";
import { targetOf } from "../workload/deploy-plan.ts";
import { type Bundle, codeOf, stateOf } from "../workload/deploy-state.ts";

export interface JobRuntime {
  image?: string;
  command?: string[];
  envs?: { name: string; value?: string }[];
  memory: number;
  maxRetries?: number;
  maxConcurrentTasks?: number;
  timeout?: number;
}

export interface Runnable {
  revision: Revision;
  runtime: JobRuntime;
  /** null: it runs its image. */
  bundle: Bundle | null;
}

export const revisionsOf = ({ workspace, uid }: Resource, { store }: Pick<Platform, "store">): Promise<Revision[]> =>
  store.resources.revisionsOf(workspace, uid);

/**
 * The revision of the execution while it is kept, else the one that is wanted if its code is there, else the one that
 * ran until now.
 */
export async function runnableOf(job: Resource, deps: Pick<Platform, "store">, own?: string): Promise<Runnable> {
  const revisions = await revisionsOf(job, deps);
  const state = stateOf(job);
  const wanted = targetOf(job, { kept: revisions.map(({ id }) => id) });
  for (const id of [own, wanted, state.activeRevision]) {
    const revision = revisions.find((each) => each.id === id);
    if (!revision) continue;
    const runtime = (revision.spec.runtime ?? {}) as JobRuntime;
    const bundle = runtime.image ? null : codeOf(state, revision.id)?.bundle;
    if (bundle !== undefined) return { revision, runtime, bundle };
  }
  const failed = state.revisions?.[wanted]?.failed;
  throw new PlatformError(
    "conflict",
    failed === undefined
      ? `Job '${job.name}' has nothing to run yet: send its code with ?upload=true, or set spec.runtime.image.`
      : `Job '${job.name}' has nothing to run: ${failed}`,
  );
}
