import { type Behaviour, workspaceOf } from "../port.ts";
import { deployed, prepareWorkload } from "../workload/behaviour.ts";
import { triggerClaims } from "../workload/triggers.ts";
import { functionKind } from "./kind.ts";

const TRANSPORT_DEFAULT = "http-stream";

export const functionBehaviour: Behaviour = {
  kind: functionKind,
  prepare(input, context) {
    prepareWorkload(input, context);
    input.spec.public ??= false;
    (input.spec.runtime as Record<string, unknown>).transport ??= TRANSPORT_DEFAULT;
  },
  ...deployed,
  claims: (input, call) => triggerClaims(input, workspaceOf(call).name),
};
