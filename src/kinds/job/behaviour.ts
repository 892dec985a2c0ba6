import { requirePlacement } from "../policy/placement.ts";
import { type Behaviour, workspaceOf } from "../port.ts";
import { deployed, prepareWorkload } from "../workload/behaviour.ts";
import { keepCronTriggers } from "../workload/cron-triggers.ts";
import { triggerClaims } from "../workload/triggers.ts";
import { job } from "./kind.ts";
import { jobReconciler } from "./reconcile.ts";

export const jobBehaviour: Behaviour = {
  kind: job,
  async prepare(input, context) {
    prepareWorkload(input, job.name, context);
    await requirePlacement(job.name, input, context);
  },
  ...deployed,
  reconciler: jobReconciler,
  claims: (input, call) => triggerClaims(input, workspaceOf(call).name),
  onWrite: keepCronTriggers,
};
