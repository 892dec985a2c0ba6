/** The models that are asked for one request, one after the other: those of the balance, then the fallbacks. */
import { GatewayError } from "../contract/gateway-errors.ts";
import type { BalanceRules } from "../contract/model-balance.ts";
import type { Downstream } from "../http/downstream.ts";
import { bySession, type ChoiceContext, chooseMember, type Member } from "./balance/choice.ts";
import type { ModelHealth } from "./balance/health.ts";
import { membersOf } from "./balance/members.ts";
import { isQuestion } from "./cache/answer-cache.ts";
import type { ClientCall } from "./client-call.ts";
import type { ModelTarget } from "./model-records.ts";
import type { PassageEngine } from "./passage/engine.ts";
import type { Failure, Passage } from "./passage/passage.ts";
import { candidateOf, speaks, type UpstreamCandidate } from "./upstream-request.ts";

export interface AskingEngine extends PassageEngine {
  health: ModelHealth;
}

interface Asking {
  passage: Passage;
  call: ClientCall;
  /** The model that the caller asked. */
  first: UpstreamCandidate;
  down: Downstream;
  target: ModelTarget;
}

type Left = Failure | GatewayError | null;

/** Fallback models per request, the same as in a model's record. */
const FALLBACKS_MAX = 8;

/** Null when the request is over; otherwise how the last model failed. Throws what refused the request before that. */
export async function askModels(engine: AskingEngine, asking: Asking): Promise<Failure | null> {
  const { passage, call, first, target } = asking;
  const { balance } = first.resolved;
  const fallbacks = fallbacksOf(first, target);
  const hasNext = fallbacks.length > 0;
  let left = balance
    ? await askMembers(engine, asking, balance, hasNext)
    : await passage.tryModel(call, first, { hasNext });
  for (const [index, name] of fallbacks.entries()) {
    if (!left || passage.gone || (left instanceof GatewayError && FINAL.has(left.code))) break;
    const { requestId } = target;
    engine.deps.log.warn({ ...leftFields(left), requestId, next: name }, "a model failed, its fallback is asked");
    const next = await usableFallback(engine, target, call, name);
    if (!next) continue;
    const after: Left = await passage.tryModel(call, next, { hasNext: index < fallbacks.length - 1 });
    // A fallback that was refused before it was asked leaves the earlier failure standing.
    left = after instanceof GatewayError ? left : after;
  }
  if (left instanceof GatewayError) throw left;
  return left;
}

/** The models that may open a realtime session, in their order: a session stays with one provider. */
export async function sessionModels(
  engine: AskingEngine,
  { call, first, down, target }: Omit<Asking, "passage">,
): Promise<UpstreamCandidate[]> {
  const { balance } = first.resolved;
  const session = engine.sessionOf(down);
  const members = balance ? await membersOf(first.resolved, balance, target.workspace, call, engine.deps) : null;
  const own = members ? homeOf(members, session).map(({ candidate }) => candidate) : [first];
  const names = fallbacksOf(first, target);
  const fallbacks = await Promise.all(names.map((name) => usableFallback(engine, target, call, name)));
  return [...own, ...fallbacks.filter((candidate) => candidate !== null)];
}

/** Asks the models of the balance until one serves the request. The policies of the asked model hold for all of them. */
async function askMembers(
  engine: AskingEngine,
  { passage, call, first, down, target }: Asking,
  rules: BalanceRules,
  hasFallbacks: boolean,
): Promise<Left> {
  const { health, random, deps } = engine;
  await passage.admitForAll(call, first);
  const session = engine.sessionOf(down);
  const context: ChoiceContext = { health, strategy: rules.strategy, stream: call.stream, session, random };
  const all = await membersOf(first.resolved, rules, target.workspace, call, deps);
  let rest = keepsState(call, all) ? homeOf(all, session) : all;
  let left: Left = new GatewayError(
    "PROVIDER_NOT_CONFIGURED",
    `No model of spec.balance of ${target.model} can answer this request: all are switched off or have another API.`,
  );
  for (let member = chooseMember(rest, true, context); member; ) {
    const asked = member;
    rest = rest.filter((other) => other !== asked);
    const next = chooseMember(rest, false, context);
    const visit = health.visit(asked.uid, call.stream);
    const after: Left = await passage
      .tryModel(call, asked.candidate, { hasNext: next !== null || hasFallbacks, retries: next === null, visit })
      .finally(() => visit.over());
    // A model that was refused before it was asked, by its own policy for instance, leaves an earlier failure standing.
    left = after instanceof GatewayError && isFailure(left) ? left : after;
    if (left === null || passage.gone) return left;
    // Chosen anew: others may have failed or come back meanwhile.
    member = chooseMember(rest, false, context);
  }
  return left;
}

const isFailure = (left: Left): boolean => left !== null && !(left instanceof GatewayError);

/** The provider stores what is asked, or is asked for what it stored: only one provider will do. */
function keepsState(call: ClientCall, members: readonly Member[]): boolean {
  if (!isQuestion(call)) return true;
  if (call.dialect.name !== "openai-responses" || call.member("store") === false) return false;
  return members.some(({ candidate }) => candidate.provider.dialects.includes("openai-responses"));
}

/** The model that holds the stored objects of a session, or of everybody without one: always the same, well or not. */
function homeOf(members: readonly Member[], session: string | null): Member[] {
  const home = session === null ? members[0] : bySession(members, session);
  return home ? [home] : [];
}

/** Every model is asked once: who names itself, or another twice, gains nothing but load. */
const fallbacksOf = ({ resolved }: UpstreamCandidate, { model }: ModelTarget): string[] => {
  const names = resolved.model.spec.fallbacks;
  return names ? [...new Set(names)].filter((name) => name !== model).slice(0, FALLBACKS_MAX) : NO_FALLBACKS;
};

const NO_FALLBACKS: string[] = [];

/** The refusal of a model's own policy is an answer, not a failure: no fallback gets around it. */
const FINAL = new Set<string>(["TOKEN_LIMIT_EXCEEDED", "POLICY_VIOLATION", "BAD_REQUEST"]);

async function usableFallback(
  { deps }: AskingEngine,
  target: ModelTarget,
  call: ClientCall,
  name: string,
): Promise<UpstreamCandidate | null> {
  const resolved = await deps.resolveModel(target.workspace, name);
  if (!resolved || resolved.model.spec.enabled === false) return null;
  const candidate = candidateOf(resolved);
  return speaks(candidate.provider, call.dialect) ? candidate : null;
}

const leftFields = (left: Failure | GatewayError) =>
  left instanceof GatewayError
    ? { code: left.code }
    : {
        model: left.candidate.resolved.model.name,
        status: left.collected?.status ?? null,
        code: left.error?.code ?? null,
      };
