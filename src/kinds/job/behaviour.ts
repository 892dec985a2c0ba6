import { type Behaviour, workspaceOf } from "../port.ts";
import { awaitingRuntime, prepareWorkload } from "../workload/behaviour.ts";
import { triggerClaims } from "../workload/triggers.ts";
import { job } from "./kind.ts";

export const jobBehaviour: Behaviour = {
  kind: job,
  prepare: (input, context) => prepareWorkload(input, context),
  outlook: awaitingRuntime,
  claims: (input, call) => triggerClaims(input, workspaceOf(call).name),
};
