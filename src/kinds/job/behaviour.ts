import { type Behaviour, workspaceOf } from "../port.ts";
import { awaitingRuntime, prepareWorkload, servedAtOnce } from "../workload/behaviour.ts";
import { triggerClaims } from "../workload/triggers.ts";
import { job } from "./kind.ts";

export const jobBehaviour: Behaviour = {
  kind: job,
  prepare: (input, context) => prepareWorkload(input, job.name, context),
  // Tasks start their own workloads: a job with an image is ready as soon as it is written.
  outlook: (spec) => ((spec.runtime as { image?: string } | undefined)?.image ? servedAtOnce : awaitingRuntime)(spec),
  claims: (input, call) => triggerClaims(input, workspaceOf(call).name),
};
