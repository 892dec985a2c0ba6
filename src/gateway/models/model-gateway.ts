/**
 * The model APIs: one door for every provider. A request is resolved to a model, admitted by its policies, sent to
 * its provider with the stored key, and its answer is passed on as it comes. When the model fails, the next of its
 * fallbacks is asked.
 *
 * The engine keeps nothing but connections; all it has to know comes in through ModelGatewayDeps.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { asGatewayError, GatewayError } from "../../contract/gateway-errors.ts";
import { writeError, writeJson } from "./answer-writer.ts";
import { type ClientCall, describeCall } from "./client-call.ts";
import { LIMIT_DEFAULTS, type ModelGatewayDeps, type ModelGatewayLimits } from "./gateway-deps.ts";
import { localDispatcher } from "./local-dispatcher.ts";
import { answerModelList, isModelList } from "./model-list.ts";
import type { ModelTarget } from "./model-records.ts";
import { type Failure, Passage } from "./passage.ts";
import { HeldBytes, readBody } from "./request-body.ts";
import { type HeaderBag, responseHeaders } from "./upstream-headers.ts";
import { baseUrlOf, type Candidate, candidateOf, speaks } from "./upstream-request.ts";
import { type Upstream, Upstreams } from "./upstreams.ts";

export interface ModelGateway {
  /** Answers one request; never rejects. */
  handleModelRequest(req: IncomingMessage, res: ServerResponse, target: ModelTarget): Promise<void>;
  /** The pools, for calls of the platform's own (lists of models). */
  readonly upstreams: Upstreams;
  stop(): Promise<void>;
}

/** As many as a model's record may name. */
const FALLBACKS_MAX = 8;

export function createModelGateway(deps: ModelGatewayDeps): ModelGateway {
  const limits: ModelGatewayLimits = { ...LIMIT_DEFAULTS, ...deps.limits };
  const upstreams = new Upstreams({
    privateAddresses: deps.privateAddresses,
    connectTimeoutMs: limits.connectTimeoutMs,
  });
  const headerNames = namesOf(deps.brandWords);
  const engine: Engine = {
    deps,
    limits,
    random: deps.random ?? Math.random,
    held: new HeldBytes(limits.heldMaxBytes),
    refusalLabels: (requestId, policy) => ({
      "x-request-id": requestId,
      ...each(headerNames.source, "platform"),
      ...(policy ? each(headerNames.policy, policy) : {}),
    }),
    upstreamOf: (candidate) => upstreamOf(candidate, upstreams, deps),
    labelsOf: (candidate, requestId, attempts) => labelsOf(candidate, requestId, attempts, headerNames),
  };
  return {
    upstreams,
    handleModelRequest: (req, res, target) => handle(engine, req, res, target),
    stop: () => upstreams.stop(),
  };
}

interface Engine {
  deps: ModelGatewayDeps;
  limits: ModelGatewayLimits;
  random: () => number;
  held: HeldBytes;
  /** Headers of an answer that the platform itself gives; a policy that refused is named. */
  refusalLabels(requestId: string, policy: string | null): HeaderBag;
  upstreamOf(candidate: Candidate): Upstream;
  labelsOf(candidate: Candidate, requestId: string, attempts: number): HeaderBag;
}

async function handle(engine: Engine, req: IncomingMessage, res: ServerResponse, target: ModelTarget): Promise<void> {
  const passage = new Passage(engine, res, target);
  res.on("close", () => {
    if (!res.writableFinished) passage.leave();
  });
  try {
    await serve(engine, passage, req, res, target);
  } catch (error) {
    refuse(engine, res, target, error);
  }
}

async function serve(
  engine: Engine,
  passage: Passage,
  req: IncomingMessage,
  res: ServerResponse,
  target: ModelTarget,
): Promise<void> {
  const { deps, limits } = engine;
  const resolved = await deps.resolveModel(target.workspace, target.model);
  if (!resolved) throw new GatewayError("WORKLOAD_NOT_FOUND", `Model ${target.model} does not exist.`);
  if (resolved.model.spec.enabled === false) {
    throw new GatewayError("WORKLOAD_DISABLED", `Model ${target.model} is switched off.`);
  }
  const first = candidateOf(resolved);
  const body = await readBody(req, limits.bodyMaxBytes, engine.held);
  try {
    await serveCall(engine, passage, describeCall(req, target.subPath, body, first.provider), first, res, target);
  } finally {
    engine.held.release(body.length);
  }
}

/** The model itself, then its fallbacks in their order. */
async function serveCall(
  engine: Engine,
  passage: Passage,
  call: ClientCall,
  first: Candidate,
  res: ServerResponse,
  target: ModelTarget,
): Promise<void> {
  const { deps } = engine;
  if (isModelList(call)) {
    answerModelList(res, call, first, engine.labelsOf(first, target.requestId, 0));
    return;
  }
  const fallbacks = (first.resolved.model.spec.fallbacks ?? []).slice(0, FALLBACKS_MAX);
  let left = await tryCandidate(passage, call, first, fallbacks.length > 0);
  for (const [index, name] of fallbacks.entries()) {
    if (!left || passage.gone || (left instanceof GatewayError && FINAL.has(left.code))) break;
    deps.log.warn(
      { ...leftFields(left), requestId: target.requestId, next: name },
      "a model failed, its fallback is asked",
    );
    const next = await usableFallback(engine, target, call, name);
    if (!next) continue;
    const after = await tryCandidate(passage, call, next, index < fallbacks.length - 1);
    // A fallback that was refused before it was asked leaves the earlier failure standing.
    left = after instanceof GatewayError ? left : after;
  }
  if (!left) return;
  if (left instanceof GatewayError) throw left;
  passage.recordFailure(left, call);
  if (!passage.gone) writeFailure(res, left, engine.labelsOf(left.candidate, target.requestId, 0));
}

/** Null when the request is over; a failure, or the reason why the model was not even asked, otherwise. */
async function tryCandidate(
  passage: Passage,
  call: ClientCall,
  candidate: Candidate,
  hasNext: boolean,
): Promise<Failure | GatewayError | null> {
  try {
    return await passage.tryModel(call, candidate, hasNext);
  } catch (error) {
    if (error instanceof GatewayError && NOT_ASKED.has(error.code)) return error;
    throw error;
  }
}

const NOT_ASKED = new Set<string>([
  "TOKEN_LIMIT_EXCEEDED",
  "POLICY_VIOLATION",
  "PROVIDER_NOT_CONFIGURED",
  "PROVIDER_ADDRESS_REFUSED",
  "BAD_REQUEST",
]);

/** The refusal of a model's own policy is an answer, not a failure: no fallback gets around it. */
const FINAL = new Set<string>(["TOKEN_LIMIT_EXCEEDED", "POLICY_VIOLATION", "BAD_REQUEST"]);

async function usableFallback(
  { deps }: Engine,
  target: ModelTarget,
  call: ClientCall,
  name: string,
): Promise<Candidate | null> {
  const resolved = await deps.resolveModel(target.workspace, name);
  if (!resolved || resolved.model.spec.enabled === false) return null;
  const candidate = candidateOf(resolved);
  return speaks(candidate.provider, call.dialect) ? candidate : null;
}

/** What the last model left behind, told to the caller. */
function writeFailure(res: ServerResponse, failure: Failure, labels: HeaderBag): void {
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
  const bag = { ...responseHeaders(headers), ...labels };
  if (request.translation) {
    const translated = request.translation.error(parse(body));
    const message = translated?.message ?? `${title} answered with status ${status}.`;
    const told = { message, type: translated?.type ?? "api_error", param: null, code: translated?.code ?? null };
    writeJson(res, status, { error: told }, bag);
    return;
  }
  if (!complete) throw new GatewayError("PROVIDER_UNAVAILABLE", `${title} answered with status ${status}.`);
  res.writeHead(status, { ...bag, "content-length": String(body.length) });
  res.end(body);
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return null;
  }
}

function refuse(engine: Engine, res: ServerResponse, target: ModelTarget, error: unknown): void {
  const { deps } = engine;
  const told = asGatewayError(error);
  const policy = typeof told.detail?.policy === "string" ? told.detail.policy : null;
  writeError(res, told, {
    nowMs: deps.clock.now(),
    docsBase: deps.docsBase,
    labels: engine.refusalLabels(target.requestId, policy),
  });
  const fields = {
    code: told.code,
    workspace: target.workspace,
    model: target.model,
    requestId: target.requestId,
    ...told.detail,
  };
  if (told.status >= 500) deps.log.error({ ...fields, error: told.cause ?? told }, "a model request failed");
}

const leftFields = (left: Failure | GatewayError) =>
  left instanceof GatewayError
    ? { code: left.code }
    : {
        model: left.candidate.resolved.model.name,
        status: left.collected?.status ?? null,
        code: left.error?.code ?? null,
      };

function upstreamOf(candidate: Candidate, upstreams: Upstreams, deps: ModelGatewayDeps): Upstream {
  const { local } = candidate.provider;
  if (local) return { origin: "http://local", basePath: "", dispatcher: localDispatcher(local, deps.clock) };
  return upstreams.at(baseUrlOf(candidate));
}

interface HeaderNames {
  model: string[];
  requestId: string[];
  attempts: string[];
  mock: string[];
  source: string[];
  policy: string[];
}

function namesOf(words: readonly string[]): HeaderNames {
  const named = (end: string): string[] => words.map((word) => `x-${word}-${end}`);
  return {
    model: named("model"),
    requestId: named("request-id"),
    attempts: named("attempts"),
    mock: named("mock"),
    source: named("source"),
    policy: named("policy"),
  };
}

const each = (names: string[], value: string): HeaderBag => Object.fromEntries(names.map((name) => [name, value]));

/** Which model answered, after how many attempts if more than one, and whether it is a real one. */
function labelsOf(
  { resolved, provider }: Candidate,
  requestId: string,
  attempts: number,
  names: HeaderNames,
): HeaderBag {
  const labels: HeaderBag = {};
  for (const name of names.model) labels[name] = resolved.model.name;
  for (const name of names.requestId) labels[name] = requestId;
  if (attempts > 1) for (const name of names.attempts) labels[name] = String(attempts);
  if (provider.local) for (const name of names.mock) labels[name] = "true";
  return labels;
}
