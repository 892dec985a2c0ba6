import { GatewayError } from "../../contract/gateway-errors.ts";

const ACTION = "Read spec.guardrails of the model, and send what it allows.";

/** What guardrails refuse has the code of a policy, and is mended elsewhere. */
export const guardrailRefusal = (message: string): GatewayError =>
  new GatewayError("POLICY_VIOLATION", message, { action: ACTION });
