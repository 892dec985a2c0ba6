/** Checks a request against its model's policies before it is sent. */
import { hash } from "node:crypto";
import { GatewayError } from "../contract/gateway-errors.ts";
import { locationRefusal, type Place } from "../contract/placement.ts";
import type { PolicyRecord, ResolvedModel, Subject } from "./model-records.ts";
import type { CappedPolicy, Refusal, Reservation, TokenBudget } from "./token-budget.ts";
import { type CapScope, readTokenLimits } from "./token-window.ts";

export interface AdmissionAsk {
  workspace: string;
  resolved: ResolvedModel;
  /** Asked only when a policy counts tokens; null when the request uses none. */
  tokens(): { input: number; output: number | null } | null;
  subject: Subject | null;
  /** The caller's word for one run of an agent; null when there is none. */
  session(): string | null;
  /** Tells one request from another. */
  fingerprint(): string;
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
  const capped = capsOf(ask, policies);
  const tokens = capped.length === 0 ? null : ask.tokens();
  if (!tokens) return null;
  const admission = await deps.budget.reserve({ policies: capped, ...tokens, fingerprint: ask.fingerprint });
  if (admission.refusal) throw refusalError(admission.refusal);
  return admission.reservation;
}

/** Throws when a policy would refuse every request; reserves and counts nothing. */
export async function refuseWhenSpent(ask: AdmissionAsk, deps: AdmissionDeps): Promise<void> {
  const policies = ask.resolved.policies.filter(forModels);
  if (policies.length === 0) return;
  checkLocation(policies, deps.place);
  const refusal = await deps.budget.spent(capsOf(ask, policies));
  if (refusal) throw refusalError(refusal);
}

const forModels = ({ resourceTypes }: PolicyRecord): boolean =>
  !resourceTypes || resourceTypes.length === 0 || resourceTypes.includes("model");

/** Whose requests a cap counts together. */
export type Counted = Pick<AdmissionAsk, "workspace" | "subject" | "session">;

/** The caps of a model that names these policies. */
export const capsOf = (ask: Counted, policies: readonly PolicyRecord[]): CappedPolicy[] =>
  policies.filter(forModels).flatMap((policy) => capOf(ask, policy));

/** A cap belongs to its policy: models that share the policy share the budget. */
function capOf(ask: Counted, policy: PolicyRecord): CappedPolicy[] {
  const limits = policy.type === "maxToken" ? readTokenLimits(policy.maxTokens) : null;
  return limits
    ? [{ key: `${ask.workspace}/${policy.name}${scopeOf(ask, limits.per)}`, name: policy.name, limits }]
    : [];
}

/** Requests of a caller without a session are one session. */
function scopeOf({ subject, session }: Counted, per: CapScope): string {
  if (per === "policy") return "";
  const caller = hash("sha256", JSON.stringify([subject?.type, subject?.id]), "base64url");
  if (per === "key") return `/key/${caller}`;
  // Callers choose the name of a session, and each would be a record: so many records and no more.
  const bucket = Number.parseInt(hash("sha256", session() ?? "").slice(0, 8), 16) % SESSIONS_MAX;
  return `/session/${caller}/${bucket}`;
}

/** Sessions of a caller that are told apart; beyond, two may share a limit. */
const SESSIONS_MAX = 4096;

function checkLocation(policies: readonly PolicyRecord[], place: Place | null): void {
  const refusal = place && locationRefusal(policies, place);
  if (refusal) throw new GatewayError("POLICY_VIOLATION", `The model must not answer here: ${refusal}.`);
}

const WORDS = {
  input: "input tokens",
  output: "output tokens",
  total: "tokens",
  ratioInputOverOutput: "ratio of input over output tokens",
  requests: "requests",
  repeats: "repeats of the same request",
} as const;

function refusalError({ policy, limit, retryAfterMs }: Refusal): GatewayError {
  return new GatewayError("TOKEN_LIMIT_EXCEEDED", `Policy ${policy}: the limit of ${WORDS[limit]} is reached.`, {
    headers: { "retry-after": String(Math.max(1, Math.ceil(retryAfterMs / 1000))) },
    detail: { policy, limit },
  });
}
