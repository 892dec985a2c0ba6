import { type Behaviour, workspaceOf } from "../port.ts";
import { deployed, prepareWorkload } from "../workload/behaviour.ts";
import { triggerClaims } from "../workload/triggers.ts";
import { functionKind } from "./kind.ts";

export const functionBehaviour: Behaviour = {
  kind: functionKind,
  prepare(input, context) {
    prepareWorkload(input, functionKind.name, context);
    input.spec.public ??= false;
  },
  ...deployed,
  claims: (input, call) => triggerClaims(input, workspaceOf(call).name),
};
