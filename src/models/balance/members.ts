/** The models of a balance as candidates for one request. */
import type { BalanceRules } from "../../contract/model-balance.ts";
import type { ClientCall } from "../client-call.ts";
import type { ModelGatewayDeps } from "../gateway-deps.ts";
import type { ResolvedModel } from "../model-records.ts";
import { candidateOf, speaks, type UpstreamCandidate } from "../upstream-request.ts";
import type { Member } from "./choice.ts";

/** The asked model itself first, unless its weight is 0. Models that are off, or cannot answer this call, are left out. */
export async function membersOf(
  asked: ResolvedModel,
  rules: BalanceRules,
  workspace: string,
  call: ClientCall,
  { resolveModel }: Pick<ModelGatewayDeps, "resolveModel">,
): Promise<Member[]> {
  const own = rules.weight ?? 1;
  const found = await Promise.all(rules.models.map(({ name }) => resolveModel(workspace, name)));
  const members = found.flatMap((resolved, index) => {
    if (!resolved || resolved.model.spec.enabled === false || resolved.model.name === asked.model.name) return [];
    return [memberOf(asked, resolved, rules.models[index]?.weight ?? 1)];
  });
  if (own > 0) members.unshift(memberOf(asked, asked, own));
  return members.filter(({ candidate }) => speaks(candidate.provider, call.dialect));
}

const memberOf = (asked: ResolvedModel, resolved: ResolvedModel, weight: number): Member => ({
  candidate: sharedCandidate(asked, resolved),
  uid: resolved.ledger.modelUid,
  weight,
});

/** Records are read once and asked many times. */
const candidates = new WeakMap<ResolvedModel, WeakMap<ResolvedModel, UpstreamCandidate>>();

/**
 * The member as the asked model uses it: counted and cached as the asked model, whose policies were checked before;
 * the member's own policies hold too.
 */
function sharedCandidate(asked: ResolvedModel, resolved: ResolvedModel): UpstreamCandidate {
  const known = candidates.get(asked) ?? new WeakMap<ResolvedModel, UpstreamCandidate>();
  candidates.set(asked, known);
  const made = known.get(resolved);
  if (made) return made;
  const checked = new Set(asked.policies.map(({ name }) => name));
  const candidate: UpstreamCandidate = {
    ...candidateOf(resolved),
    resolved: {
      ...resolved,
      ledger: asked.ledger,
      policies: resolved.policies.filter(({ name }) => !checked.has(name)),
      cache: asked.cache,
      guardrails: asked === resolved ? asked.guardrails : [...(asked.guardrails ?? []), ...(resolved.guardrails ?? [])],
    },
  };
  known.set(resolved, candidate);
  return candidate;
}
