/** Chooses the revision of a job that a task runs, and its image or its built code. */

import { PlatformError } from "../../contract/errors.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Revision } from "../../store/resources/revision.ts";
import type { Platform } from "../port.ts";
import { targetOf } from "../workload/deploy-plan.ts";
import { type Bundle, codeOf, stateOf } from "../workload/deploy-state.ts";
import type { Job } from "./kind.ts";

export type JobRevision = Revision<Job["spec"]>;
export type JobRuntime = NonNullable<Job["spec"]["runtime"]>;

export interface Runnable {
  revision: JobRevision;
  runtime: JobRuntime;
  /** null = the task runs the image. */
  bundle: Bundle | null;
}

/** A revision is a former spec of the job, so that it has the type of one. */
export const revisionsOf = async (
  { workspace, uid }: Resource,
  { store }: Pick<Platform, "store">,
): Promise<JobRevision[]> => (await store.resources.revisionsOf(workspace, uid)) as JobRevision[];

/**
 * The execution's own revision while it is kept; otherwise the wanted revision if its code is built; otherwise the
 * revision that ran before.
 */
export async function runnableOf(job: Resource, deps: Pick<Platform, "store">, own?: string): Promise<Runnable> {
  const revisions = await revisionsOf(job, deps);
  const state = stateOf(job);
  const wanted = targetOf(job, { kept: revisions.map(({ id }) => id) });
  for (const id of [own, wanted, state.activeRevision]) {
    const revision = revisions.find((each) => each.id === id);
    if (!revision) continue;
    const runtime = revision.spec.runtime ?? {};
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
