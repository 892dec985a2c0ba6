/** Checks a request against its model's policies before it is sent. */
import { GatewayError } from "../contract/gateway-errors.ts";
import { locationRefusal, type Place } from "../contract/placement.ts";
import type { PolicyRecord, ResolvedModel } from "./model-records.ts";
import type { CappedPolicy, Refusal, Reservation, TokenBudget } from "./token-budget.ts";
import { readTokenLimits } from "./token-window.ts";

export interface AdmissionAsk {
  workspace: string;
  resolved: ResolvedModel;
  /** Asked only when a policy counts tokens; null when the request uses none. */
  tokens(): { input: number; output: number | null } | null;
}

export interface AdmissionDeps {
  budget: TokenBudget;
  /** Null where nothing is known of the server: location policies then refuse nothing. */
  place: Place | null;
}

/** Throws when a policy refuses; null when none has to be told what was used. */
export async function admitRequest(ask: AdmissionAsk, deps: AdmissionDeps): Promise<Reservation | null> {
  const policies = ask.resolved.policies.filter(forModels);
  if (policies.length === 0) return null;
  checkLocation(policies, deps.place);
  const capped = policies.flatMap((policy) => capOf(ask.workspace, policy));
  const tokens = capped.length === 0 ? null : ask.tokens();
  if (!tokens) return null;
  const admission = await deps.budget.reserve({ policies: capped, ...tokens });
  if (admission.refusal) throw refusalError(admission.refusal);
  return admission.reservation;
}

const forModels = ({ resourceTypes }: PolicyRecord): boolean =>
  !resourceTypes || resourceTypes.length === 0 || resourceTypes.includes("model");

/** A cap belongs to its policy: models that share the policy share the budget. */
function capOf(workspace: string, policy: PolicyRecord): CappedPolicy[] {
  const limits = policy.type === "maxToken" ? readTokenLimits(policy.maxTokens) : null;
  return limits ? [{ key: `${workspace}/${policy.name}`, name: policy.name, limits }] : [];
}

function checkLocation(policies: readonly PolicyRecord[], place: Place | null): void {
  const refusal = place && locationRefusal(policies, place);
  if (refusal) throw new GatewayError("POLICY_VIOLATION", `The model must not answer here: ${refusal}.`);
}

const WORDS = {
  input: "input tokens",
  output: "output tokens",
  total: "tokens",
  ratioInputOverOutput: "ratio of input over output tokens",
} as const;

function refusalError({ policy, limit, retryAfterMs }: Refusal): GatewayError {
  return new GatewayError("TOKEN_LIMIT_EXCEEDED", `Policy ${policy}: the limit of ${WORDS[limit]} is reached.`, {
    headers: { "retry-after": String(Math.max(1, Math.ceil(retryAfterMs / 1000))) },
    detail: { policy, limit },
  });
}
