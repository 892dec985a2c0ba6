/**
 * The model APIs: one door for every provider. A request is resolved to a model, admitted by its policies, sent to
 * its provider with the stored key, and its answer is passed on as it comes. When the model fails, the next of its
 * fallbacks is asked.
 *
 * The engine keeps nothing but connections; all it has to know comes in through ModelGatewayDeps.
 */

import { randomUUID } from "node:crypto";
import { asGatewayError, GATEWAY_ERRORS, GatewayError } from "../contract/gateway-errors.ts";
import type { Downstream, DownstreamEvents } from "../http/downstream.ts";
import { brandWords, headerRules } from "../http/header-rules.ts";
import { type PlatformResponseOptions, respondError } from "../http/platform-response.ts";
import { NO_PROXIES } from "../lib/network/proxies.ts";
import { at } from "../lib/untrusted-json.ts";
import { writeJson, writeWhole } from "./answer-writer.ts";
import { type AskingEngine, askModels, sessionModels } from "./asking.ts";
import { ModelHealth } from "./balance/health.ts";
import { AnswerCache, type CacheUse } from "./cache/answer-cache.ts";
import { ModelCaller } from "./caller.ts";
import { type ClientCall, describeCall } from "./client-call.ts";
import { EmbeddingRequest } from "./embedding-request.ts";
import { isForm } from "./forms/multipart-form.ts";
import { formModel } from "./forms/multipart-model.ts";
import { LIMIT_DEFAULTS, type ModelGatewayDeps, type ModelGatewayLimits } from "./gateway-deps.ts";
import { HeldBytes } from "./held-bytes.ts";
import { valueOfMember } from "./json-members.ts";
import { localCall } from "./local-call.ts";
import { answerModelList, isModelList } from "./model-list.ts";
import type { ModelTarget } from "./model-records.ts";
import type { Embedding } from "./passage/engine.ts";
import { type Failure, Passage } from "./passage/passage.ts";
import type { ChatError } from "./providers/chat-translation.ts";
import { openSession } from "./realtime/session.ts";
import { servedModel } from "./served-model.ts";
import { answerTokenCount, isTokenCount } from "./token-count.ts";
import { passedFields } from "./upstream-headers.ts";
import { baseUrlOf, candidateOf, type UpstreamCandidate } from "./upstream-request.ts";
import { type Upstream, Upstreams } from "./upstreams.ts";

export interface ModelGateway {
  /** Answers one request; never rejects. */
  handleModelRequest(down: Downstream, target: ModelTarget): Promise<void>;
  /** The same where the body names the model; `choose` finds it, and rejects with a GatewayError. */
  handleNamedRequest(down: Downstream, target: UnnamedTarget, choose: ChooseModel): Promise<void>;
  /** The providers, for calls of the platform's own (lists of models). */
  readonly upstreams: Upstreams;
  /** Options of error responses. */
  readonly responding: PlatformResponseOptions;
  stop(): Promise<void>;
}

/** A request whose body names the model. */
export type UnnamedTarget = Omit<ModelTarget, "workspace" | "model">;

export type ChooseModel = (name: string) => Promise<Pick<ModelTarget, "workspace" | "model">>;

export function createModelGateway(deps: ModelGatewayDeps): ModelGateway {
  const limits: ModelGatewayLimits = { ...LIMIT_DEFAULTS, ...deps.limits };
  const upstreams = new Upstreams({
    privateAddresses: deps.privateAddresses,
    connectTimeoutMs: limits.connectTimeoutMs,
    tickMs: limits.tickMs,
  });
  const headerNames = namesOf(brandWords(deps.brand));
  const engine: Engine = {
    deps,
    limits,
    random: deps.random ?? Math.random,
    held: new HeldBytes(limits.heldMaxBytes),
    responding: {
      rules: headerRules({ brand: deps.brand, proxies: NO_PROXIES, pathPages: "sandboxed" }),
      clock: deps.clock,
      docsUrl: deps.docsUrl,
    },
    headerNames,
    upstreams,
    upstreamOf: (candidate) => upstreamOf(candidate, upstreams, deps),
    labelsOf: (candidate, requestId, attempts) => labelsOf(candidate, requestId, attempts, headerNames),
    sessionOf: (down) => sessionOf(down, headerNames.session),
    cache: new AnswerCache(() => deps.clock.now()),
    health: new ModelHealth(
      () => deps.clock.now(),
      (uid, forMs) => deps.log.warn({ uid, forMs }, "a model failed and is left out of its balances for a while"),
    ),
    webhooks: { outbound: deps.outbound, clock: deps.clock, brandWords: brandWords(deps.brand), log: deps.log },
    redactedLabels: (count) => headerNames.redacted.flatMap((name) => [name, String(count)]),
    cacheLabels: (use) => cacheLabels(use, deps.clock.now(), headerNames),
    embed: (target, model, text) => embed(engine, target, model, text),
  };
  return {
    upstreams,
    responding: engine.responding,
    handleModelRequest: (down, target) => handlerOf(down)(engine, down, target, null),
    handleNamedRequest: (down, target, choose) => handlerOf(down)(engine, down, { ...target, ...NO_MODEL }, choose),
    stop: () => upstreams.stop(),
  };
}

interface Engine extends AskingEngine {
  responding: PlatformResponseOptions;
  headerNames: HeaderNames;
}

const handlerOf = ({ upgrade }: Downstream) => (upgrade === null ? handle : handleSession);

const NO_MODEL = { workspace: "", model: "" };

async function handle(engine: Engine, down: Downstream, asked: ModelTarget, choose: ChooseModel | null): Promise<void> {
  let target = asked;
  let uid: string | null = null;
  let isError = false;
  const startedMs = performance.now();
  const passage = new Passage(engine, down, asked);
  const { bodyMaxBytes: maxBytes } = engine.limits;
  const caller = new ModelCaller(down, passage, { maxBytes, held: engine.held });
  try {
    if (choose) {
      const named =
        nameInBody(await caller.readBody(), down.header("content-type") ?? "") ?? nameInHeader(engine, down);
      target = { ...asked, ...(await choose(named)) };
      passage.aim(target);
    }
    const first = await askedModel(engine, target);
    uid = first.resolved.ledger.modelUid;
    const call = describeCall(down, target.subPath, await caller.readBody(), first.provider);
    await serveCall(engine, passage, call, first, down, target);
  } catch (error) {
    isError = GATEWAY_ERRORS[asGatewayError(error).code].status >= 500;
    refuse(engine, passage, down, target, error);
  } finally {
    await passage.releaseForAll();
    caller.releaseBody();
    if (uid !== null) engine.deps.ended?.(uid, { durationMs: performance.now() - startedMs, isError, isCold: false });
    const { requestId, workspace, model } = target;
    engine.deps.log.debug({ requestId, workspace, model, attempts: passage.attempts }, "a model answered");
  }
}

/** A WebSocket. The request is over when the session has begun; the session ends by itself. */
async function handleSession(
  engine: Engine,
  down: Downstream,
  asked: ModelTarget,
  choose: ChooseModel | null,
): Promise<void> {
  let target = asked;
  const startedMs = performance.now();
  const gone = new AbortController();
  down.attach({ ...NO_EVENTS, onClientGone: () => gone.abort() });
  try {
    if (choose) target = { ...asked, ...(await choose(nameInQuery(asked.subPath) ?? nameInHeader(engine, down))) };
    const first = await askedModel(engine, target);
    const call = describeCall(down, target.subPath, NO_BODY, first.provider);
    const candidates = await sessionModels(engine, { call, first, down, target });
    const uid = first.resolved.ledger.modelUid;
    const ended = (): void =>
      engine.deps.ended?.(uid, { durationMs: performance.now() - startedMs, isError: false, isCold: false });
    await openSession(engine, { down, call, first, target, candidates, signal: gone.signal, ended });
  } catch (error) {
    refuse(engine, { begun: false, gone: gone.signal.aborted }, down, target, error);
  }
}

/** Counted as a request of the same caller to the other model, whose policies hold. */
function embed(engine: Engine, { workspace, subject }: ModelTarget, model: string, text: string): Embedding {
  const request = new EmbeddingRequest(text);
  const target = { workspace, model, subject, subPath: "/v1/embeddings", requestId: randomUUID() };
  void handle(engine, request, target, null);
  return { answer: request.answer, leave: () => request.leave() };
}

const NO_BODY = Buffer.alloc(0);
const NO_EVENTS: DownstreamEvents = {
  onRequestBody() {},
  onRequestEnd() {},
  onClientDrain() {},
  onClientGone() {},
};

const askedModel = async ({ deps }: Engine, target: ModelTarget): Promise<UpstreamCandidate> =>
  candidateOf(await servedModel(target, deps));

/** A WebSocket names the model in the query. */
const nameInQuery = (subPath: string): string | null =>
  new URLSearchParams(subPath.slice(subPath.indexOf("?") + 1)).get("model") || null;

function nameInBody(body: Buffer, contentType: string): string | null {
  const name = isForm(contentType) ? formModel(body, contentType) : valueOfMember(body, "model")?.value;
  return typeof name === "string" && name !== "" ? name : null;
}

/** Files, batches and what is looked up later have no model in their body. */
function nameInHeader({ headerNames }: Engine, down: Downstream): string {
  for (const header of headerNames.model) {
    const name = down.header(header);
    if (name) return name;
  }
  throw new GatewayError(
    "BAD_REQUEST",
    `The request must name the model, as \`workspace/name\` or \`name\`: in \`model\` of the body (of the address for a WebSocket), or in ${headerNames.model[0]}.`,
  );
}

async function serveCall(
  engine: Engine,
  passage: Passage,
  call: ClientCall,
  first: UpstreamCandidate,
  down: Downstream,
  target: ModelTarget,
): Promise<void> {
  if (isModelList(call)) {
    answerModelList(down, call, first, engine.labelsOf(first, target.requestId, 0));
    return;
  }
  if (isTokenCount(call, first)) {
    const estimated = engine.headerNames.estimated.flatMap((name) => [name, "true"]);
    answerTokenCount(down, call, first, { labels: engine.labelsOf(first, target.requestId, 0), estimated });
    return;
  }
  const left = await askModels(engine, { passage, call, first, down, target });
  if (!left) return;
  passage.recordFailure(left, call);
  if (!passage.gone) writeFailure(down, left, engine.labelsOf(left.candidate, target.requestId, passage.attempts));
}

/** Writes the last model's failure to the caller. */
function writeFailure(down: Downstream, failure: Failure, labels: string[]): void {
  const { candidate, request, collected, error } = failure;
  const { title } = candidate.provider;
  if (!collected) throw error ?? new GatewayError("PROVIDER_UNAVAILABLE");
  const { status, headers, body, complete } = collected;
  if (status === 401)
    throw new GatewayError("PROVIDER_AUTHENTICATION_FAILED", `${title} refused the key of the connection.`);
  if (status < 400) {
    throw new GatewayError(
      "PROVIDER_BAD_RESPONSE",
      `${title} answered with a redirect, which is not followed: correct spec.config.baseUrl.`,
    );
  }
  if (request.translation || request.front) {
    const translated = request.translation ? request.translation.error(parse(body)) : chatError(parse(body));
    const message = translated?.message ?? `${title} answered with status ${status}.`;
    const told = { message, type: translated?.type ?? "api_error", param: null, code: translated?.code ?? null };
    const shown = request.front ? request.front.front.error(status, told) : { error: told };
    writeJson(down, status, shown, passedFields(headers, CONTENT_TYPE, labels));
    return;
  }
  if (!complete) throw new GatewayError("PROVIDER_UNAVAILABLE", `${title} answered with status ${status}.`);
  writeWhole(down, status, body, passedFields(headers, NOTHING, labels));
}

/** As providers of OpenAI's tongue write it; some leave the frame out. */
function chatError(body: unknown): ChatError | null {
  const error = at(body, "error") ?? body;
  const message = at(error, "message");
  if (typeof message !== "string") return null;
  const [type, code] = [at(error, "type"), at(error, "code")];
  return { message, type: typeof type === "string" ? type : "api_error", code: code == null ? null : String(code) };
}

const CONTENT_TYPE: ReadonlySet<string> = new Set(["content-type"]);
const NOTHING: ReadonlySet<string> = new Set();

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return null;
  }
}

function refuse(
  engine: Engine,
  passage: Pick<Passage, "begun" | "gone">,
  down: Downstream,
  target: ModelTarget,
  error: unknown,
): void {
  const { deps, responding, headerNames } = engine;
  const { requestId } = target;
  const told = asGatewayError(error);
  const policy = typeof told.detail?.policy === "string" ? told.detail.policy : null;
  const marks = policy === null ? [] : headerNames.policy.flatMap((name) => [name, policy]);
  // The clients of the providers ask again after any 5xx, unless they are told not to in a header of their own.
  if (!GATEWAY_ERRORS[told.code].retryable) marks.push("x-should-retry", "false");
  // A caller who already has part of an answer only sees the connection close.
  if (passage.begun) down.destroy();
  else if (!passage.gone) respondError(responding, down, told, { fixed: null, requestId, marks });
  const fields = {
    code: told.code,
    workspace: target.workspace,
    model: target.model,
    requestId,
    ...told.detail,
  };
  if (told.status >= 500) deps.log.error({ ...fields, error: told.cause ?? told }, "a model request failed");
}

function upstreamOf(candidate: UpstreamCandidate, upstreams: Upstreams, deps: ModelGatewayDeps): Upstream {
  const { local } = candidate.provider;
  if (local) return { basePath: "", send: (request, sink) => localCall(local, deps.clock, request, sink) };
  return upstreams.at(baseUrlOf(candidate));
}

interface HeaderNames {
  model: string[];
  requestId: string[];
  attempts: string[];
  mock: string[];
  policy: string[];
  estimated: string[];
  cache: string[];
  similarity: string[];
  redacted: string[];
  session: string[];
}

function namesOf(words: readonly string[]): HeaderNames {
  const named = (end: string): string[] => words.map((word) => `x-${word}-${end}`);
  return {
    model: named("model"),
    requestId: ["x-request-id", ...named("request-id")],
    attempts: named("attempts"),
    mock: named("mock"),
    policy: named("policy"),
    estimated: named("estimated"),
    cache: named("cache"),
    similarity: named("cache-similarity"),
    redacted: named("redacted"),
    session: [...named("session-id"), ...named("thread-id")],
  };
}

/** Which model answered, after how many attempts if more than one, and whether it is a real one. */
function labelsOf(
  { resolved, provider }: UpstreamCandidate,
  requestId: string,
  attempts: number,
  names: HeaderNames,
): string[] {
  const labels: string[] = [];
  for (const name of names.model) labels.push(name, resolved.model.name);
  for (const name of names.requestId) labels.push(name, requestId);
  if (attempts > 1) for (const name of names.attempts) labels.push(name, String(attempts));
  if (provider.local) for (const name of names.mock) labels.push(name, "true");
  return labels;
}

/** Whether the answer was kept, for the same or a similar question, and how many seconds ago. */
function cacheLabels(use: CacheUse, nowMs: number, names: HeaderNames): string[] {
  const { found } = use;
  const similarity = found ? use.similarity : null;
  const labels = names.cache.flatMap((name) => [name, found ? (similarity === null ? "hit" : "similar") : "miss"]);
  if (similarity !== null) labels.push(...names.similarity.flatMap((name) => [name, similarity.toFixed(3)]));
  if (found) labels.push("age", String(Math.max(0, Math.floor((nowMs - found.keptAtMs) / 1000))));
  return labels;
}

function sessionOf(down: Downstream, names: readonly string[]): string | null {
  for (const name of names) {
    const value = down.header(name);
    if (value) return value;
  }
  return null;
}
