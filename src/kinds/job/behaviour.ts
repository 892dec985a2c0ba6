import { invalidField } from "../../contract/errors.ts";
import { canonicalJson } from "../../lib/canonical-json.ts";
import { requireOwnGrants } from "../drive/grants.ts";
import { requirePlacement } from "../policy/placement.ts";
import { type Behaviour, type Input, type PrepareContext, workspaceOf } from "../port.ts";
import { deployed, prepareWorkload } from "../workload/behaviour.ts";
import { keepCronTriggers } from "../workload/cron-triggers.ts";
import { requireNetwork } from "../workload/network-place.ts";
import { triggerClaims } from "../workload/triggers.ts";
import { type Job, job } from "./kind.ts";
import { jobReconciler } from "./reconcile.ts";

export const jobBehaviour: Behaviour<Job> = {
  kind: job,
  async prepare(input, context) {
    refuseRunner(input, context);
    prepareWorkload(input, job.name, context);
    await requireNetwork(input, context);
    await requirePlacement(job.name, input, context);
    await requireOwnGrants(job.name, input, context);
  },
  ...deployed,
  reconciler: jobReconciler,
  claims: (input, call) => triggerClaims(input, workspaceOf(call).name),
  onWrite: keepCronTriggers,
};

/** Refuses a new `githubRunner`. A stored one, from an earlier version, may be written back unchanged. */
function refuseRunner({ spec }: Input<Job>, { current }: PrepareContext<Job>): void {
  const { repositories } = spec.githubRunner ?? {};
  if (!repositories || (Array.isArray(repositories) && repositories.length === 0)) return;
  if (canonicalJson([spec.githubRunner]) === canonicalJson([current?.spec.githubRunner])) return;
  throw invalidField(
    "spec.githubRunner",
    "this server does not register runners at GitHub; start the job from a workflow with POST /jobs/{jobId}/executions instead",
  );
}
