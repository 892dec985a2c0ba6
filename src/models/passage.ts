/**
 * One caller's request on its way through: the attempts at one model after the other, what they used, and the one
 * entry in the usage ledger at the end.
 */
import { hash } from "node:crypto";
import { GATEWAY_ERRORS, GatewayError } from "../contract/gateway-errors.ts";
import type { GuardrailRules } from "../contract/model-guardrails.ts";
import type { Downstream } from "../http/downstream.ts";
import { admitRequest } from "./admission.ts";
import { type AnswerCache, AnswerRecorder, type CacheUse, keptUpstream, useCache } from "./answer-cache.ts";
import { openAnswer, streamFailure } from "./answer-writer.ts";
import type { Visit } from "./balance/health.ts";
import { createsBatch, looksAtBatches, type MarkSeal, markedMetadata } from "./batches/batch-mark.ts";
import { finishedBatches } from "./batches/batch-usage.ts";
import { type ClientCall, estimateInputTokens, outputLimit, withBody } from "./client-call.ts";
import { type ExchangeJudge, type ExchangeResult, ModelExchange, type OpenedBody } from "./exchange.ts";
import type { ModelGatewayDeps, ModelGatewayLimits } from "./gateway-deps.ts";
import { type AnswerGuard, Guard } from "./guardrails/guard.ts";
import type { WebhookDeps } from "./guardrails/webhook.ts";
import { editMembers } from "./json-members.ts";
import type { ModelTarget, ResolvedModel } from "./model-records.ts";
import { batchUsage, type ModelUsage } from "./model-usage.ts";
import { costNanoUsd } from "./price-book.ts";
import { NO_USAGE, type TokenUsage } from "./providers/token-usage.ts";
import { isTrouble, judge, type RetryVerdict } from "./retry.ts";
import { OUTPUT_RESERVE_DEFAULT, type Reservation } from "./token-budget.ts";
import {
  baseUrlOf,
  candidateOf,
  type UpstreamCandidate,
  type UpstreamRequest,
  upstreamRequest,
} from "./upstream-request.ts";
import { providerFailure, type Upstream, type Upstreams } from "./upstreams.ts";
import { type MeteredUsage, UsageMeter } from "./usage-meter.ts";

/** What all requests share. */
export interface PassageEngine {
  deps: ModelGatewayDeps;
  limits: ModelGatewayLimits;
  random: () => number;
  upstreams: Upstreams;
  upstreamOf(candidate: UpstreamCandidate): Upstream;
  labelsOf(candidate: UpstreamCandidate, requestId: string, attempts: number): string[];
  /** The session that the caller names; see `maxTokens.per`. */
  sessionOf(down: Downstream): string | null;
  cache: AnswerCache;
  /** The field that says how the cache was used. */
  cacheLabels(use: CacheUse): string[];
  /** Asks the webhooks of guardrails. */
  webhooks: WebhookDeps;
  /** The field that says how many parts of the request were replaced. */
  redactedLabels(count: number): string[];
}

type Collected = Extract<ExchangeResult, { kind: "collected" }>;

/** The result of a model that did not serve the request: its error answer, or none. */
export interface Failure {
  candidate: UpstreamCandidate;
  request: UpstreamRequest;
  collected: Collected | null;
  error: GatewayError | null;
}

/** How a model is asked. */
export interface Turn {
  /** Another model is asked if this one fails. */
  hasNext: boolean;
  /** False: a failure leads to the next model at once. Default true. */
  retries?: boolean;
  /** Told how the model did. */
  visit?: Visit;
}

interface Attempt {
  call: ClientCall;
  candidate: UpstreamCandidate;
  upstream: Upstream;
  request: UpstreamRequest;
  turn: Turn;
  /** Counted from one, at this model. */
  number: number;
  meter: UsageMeter;
  reservation: Reservation | null;
  /** Null for a model, or a request, without a cache. */
  cached: CacheUse | null;
  recorder: AnswerRecorder | null;
  guard: AnswerGuard | null;
}

type Metered = Pick<Attempt, "call" | "candidate" | "reservation"> & Partial<Pick<Attempt, "cached">>;

export class Passage {
  readonly #engine: PassageEngine;
  readonly #down: Downstream;
  #target: ModelTarget;
  readonly #startedAtMs: number;
  #gone = false;
  #current: ModelExchange | null = null;
  #begun = false;
  #body: OpenedBody | null = null;
  #wake: (() => void) | null = null;
  #attempts = 0;
  #status = 0;
  #firstByteMs: number | null = null;
  /** The model that was asked: the first that is tried. */
  #asked: ResolvedModel | null = null;
  #recorded = false;
  #redactions = 0;
  #guard: Guard | null = null;
  /** Of the asked model's policies, where several models share its requests. */
  #reservation: Reservation | null = null;

  constructor(engine: PassageEngine, down: Downstream, target: ModelTarget) {
    this.#engine = engine;
    this.#down = down;
    this.#target = target;
    this.#startedAtMs = engine.deps.clock.now();
  }

  /** The model that the request is for, where only its body names that. */
  aim(target: ModelTarget): void {
    this.#target = target;
  }

  /** True when the caller went away. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Made so far, at all models together. */
  get attempts(): number {
    return this.#attempts;
  }

  /** True once the caller has been sent a part of an answer. */
  get begun(): boolean {
    return this.#begun || (this.#current?.begun ?? false);
  }

  /** The caller takes more of the answer. */
  onDrain(): void {
    this.#current?.drained();
  }

  /** The caller went away: the attempt under way ends, and none follows. */
  onGone(): void {
    this.#gone = true;
    this.#current?.abort();
    this.#wake?.();
  }

  /** Null when the request is over; otherwise why this model did not serve it, or was not even asked. */
  async tryModel(asked: ClientCall, candidate: UpstreamCandidate, turn: Turn): Promise<Failure | GatewayError | null> {
    let reservation: Reservation | null = null;
    this.#asked ??= candidate.resolved;
    try {
      const provider = this.#engine.upstreamOf(candidate);
      const rules = this.#rulesFor(candidate);
      const passed = this.#marked(rules.length === 0 ? asked : await this.#guarded(asked, rules), candidate);
      const guard = this.#guard?.answer(passed, rules) ?? null;
      const request = upstreamRequest(passed, candidate, provider.basePath);
      const call = request.front?.call ?? passed;
      if (candidate.resolved.policies.length > 0) reservation = await this.#admit(call, candidate);
      const cached = candidate.resolved.cache ? this.#useCache(call, candidate, request) : null;
      const recorder = cached?.found === null ? new AnswerRecorder() : null;
      const upstream = cached?.found
        ? keptUpstream(provider.basePath, cached.found)
        : (recorder?.record(provider) ?? provider);
      for (let number = 1; ; number += 1) {
        const meter = new UsageMeter(request.dialect);
        const answered = { meter, reservation, cached, recorder, guard };
        const attempt: Attempt = { call, candidate, upstream, request, turn, number, ...answered };
        const failed = await this.#send(attempt);
        if (!failed) return null;
        const verdict = this.#judge(attempt, failed.collected, isHopeless(failed.error));
        if (verdict.do !== "retry") return failed;
        await this.#pause(verdict.delayMs);
        if (this.#gone) {
          this.#record(attempt, "aborted", NOTHING);
          return null;
        }
      }
    } catch (error) {
      // Who was recorded was asked: a guardrail that refuses an answer does not lead to another model.
      if (error instanceof GatewayError && NOT_ASKED.has(error.code) && !this.#recorded) return error;
      throw error;
    } finally {
      // Attempts that used tokens have already settled; the rest of the reservation is released.
      if (reservation) await reservation.release();
    }
  }

  /** The rules of the asked model hold for its fallbacks, too. */
  #rulesFor({ resolved }: UpstreamCandidate): readonly GuardrailRules[] {
    const first = this.#asked ?? resolved;
    if (!first.guardrails && !resolved.guardrails) return NO_RULES;
    return [...new Set([...(first.guardrails ?? []), ...(resolved.guardrails ?? [])])];
  }

  async #guarded(asked: ClientCall, rules: readonly GuardrailRules[]): Promise<ClientCall> {
    const { requestId, workspace, model, subject } = this.#target;
    const session = this.#engine.sessionOf(this.#down);
    this.#guard ??= new Guard(this.#engine.webhooks, ({ path }) => ({
      ...{ requestId, workspace, model, path, subject, session },
    }));
    const { call, redactions } = await this.#guard.request(asked, rules);
    this.#redactions = redactions;
    return call;
  }

  /** A new batch says who made it: its tokens are counted for that caller when it is finished. */
  #marked(call: ClientCall, candidate: UpstreamCandidate): ClientCall {
    if (!createsBatch(call) || !call.members) return call;
    const metadata = JSON.stringify(markedMetadata(call.member("metadata"), this.#target, this.#sealFor(candidate)));
    return withBody(call, editMembers(call.body, call.members, { metadata }));
  }

  #sealFor(candidate: UpstreamCandidate): MarkSeal {
    const baseUrl = candidate.provider.local ? "" : baseUrlOf(candidate);
    return { key: this.#engine.deps.batchKey, baseUrl };
  }

  async #countBatches(body: Buffer, shownBy: UpstreamCandidate): Promise<void> {
    const { deps } = this.#engine;
    try {
      for (const batch of finishedBatches(body, this.#sealFor(shownBy))) {
        // The mark is read from the provider: it must not lead into another workspace.
        const resolved =
          batch.workspace === this.#target.workspace ? await deps.resolveModel(batch.workspace, batch.model) : null;
        if (resolved) deps.usage.record(batchUsage(batch, candidateOf(resolved), deps.priceBook));
      }
    } catch (error) {
      deps.log.error({ error, requestId: this.#target.requestId }, "the usage of a batch was not recorded");
    }
  }

  /** Checks the policies of the asked model once, whichever models then serve the request. */
  async admitForAll(call: ClientCall, candidate: UpstreamCandidate): Promise<void> {
    if (candidate.resolved.policies.length > 0) this.#reservation = await this.#admit(call, candidate);
  }

  async releaseForAll(): Promise<void> {
    await this.#reservation?.release();
  }

  #admit(call: ClientCall, { resolved }: UpstreamCandidate): Promise<Reservation | null> {
    const tokens = () => (call.dialect.free ? null : { input: estimateInputTokens(call), output: outputLimit(call) });
    const { workspace, subject } = this.#target;
    const session = () => this.#engine.sessionOf(this.#down);
    const fingerprint = () => hash("sha256", call.body, "base64url").slice(0, FINGERPRINT_LENGTH);
    return admitRequest({ workspace, resolved, tokens, subject, session, fingerprint }, this.#engine.deps);
  }

  #useCache(call: ClientCall, candidate: UpstreamCandidate, request: UpstreamRequest): CacheUse | null {
    const { resolved, provider } = candidate;
    const { workspace, subject } = this.#target;
    const rules = resolved.cache;
    if (!rules) return null;
    const baseUrl = provider.local ? provider.name : baseUrlOf(candidate);
    return useCache(this.#engine.cache, {
      ...{ call, request, rules, workspace, subject, baseUrl },
      ledger: resolved.ledger,
    });
  }

  /** The request ends with what the last model left behind. */
  recordFailure({ candidate, collected }: Failure, call: ClientCall): void {
    this.#status = collected?.status ?? 0;
    this.#record({ call, candidate, reservation: null }, "failed", NOTHING);
  }

  async #send(attempt: Attempt): Promise<Failure | null> {
    const { limits, upstreams } = this.#engine;
    const { candidate, request, upstream } = attempt;
    const { firstByteTimeoutMs, idleTimeoutMs } = limits;
    const exchange = new ModelExchange(
      { upstream, request, down: this.#down, sweeper: upstreams.sweeper, firstByteTimeoutMs, idleTimeoutMs },
      this.#judgeOf(attempt),
    );
    this.#attempts += 1;
    this.#current = exchange;
    if (this.#gone) exchange.abort();
    const result = await exchange.run();
    this.#current = null;
    this.#begun = exchange.begun;
    if (attempt.turn.visit && !attempt.cached?.found) this.#judgeModel(attempt.turn.visit, result);
    switch (result.kind) {
      case "delivered":
        return null;
      case "aborted":
        this.#record(attempt, "aborted", result.sent ? this.#metered(attempt) : NOTHING);
        return null;
      case "interrupted": {
        this.#record(attempt, "interrupted", this.#metered(attempt));
        // An answer that nobody has seen is not asked for again: the provider has counted it.
        if (!result.told) throw providerFailure(result.error, candidate.provider.title, true);
        return null;
      }
      case "collected":
        return { candidate, request, collected: result, error: null };
      case "failed":
        return { candidate, request, collected: null, error: providerFailure(result.error, candidate.provider.title) };
    }
  }

  /** Tells the balance how the model did; a caller that went away is no failure. */
  #judgeModel(visit: Visit, result: ExchangeResult): void {
    if (result.kind === "aborted") {
      if (result.sent && this.#firstByteMs === null) visit.abandoned(this.#engine.deps.clock.now() - this.#startedAtMs);
      return;
    }
    const failed =
      result.kind === "delivered"
        ? isTrouble(this.#status) || this.#body?.pipe.broke
        : result.kind !== "collected" || result.status < 400 || isTrouble(result.status);
    if (failed) visit.failed(result.kind === "collected" ? result.headers : []);
    else visit.succeeded();
  }

  #judgeOf(attempt: Attempt): ExchangeJudge {
    const { labelsOf, cacheLabels, redactedLabels, cache, deps } = this.#engine;
    const { candidate, request, meter, cached, recorder, turn, guard } = attempt;
    const askedAtMs = deps.clock.now();
    return {
      collects: (status, headers) => {
        // Errors come sooner than answers: a model that fails must not look like a fast one.
        if (status < 300 && !cached?.found) turn.visit?.began(deps.clock.now() - askedAtMs);
        this.#firstByteMs ??= deps.clock.now() - this.#startedAtMs;
        // A refused key is the platform's trouble, not the caller's; a redirect would take the key elsewhere.
        if (status === 401 || (status >= 300 && status < 400)) return true;
        if (status < 400) return false;
        return (
          request.translation !== null ||
          request.front !== null ||
          this.#judge(attempt, { status, headers }).do !== "deliver"
        );
      },
      open: (status, headers) => {
        this.#status = status;
        const labels = labelsOf(candidate, this.#target.requestId, this.#attempts);
        if (cached) labels.push(...cacheLabels(cached));
        if (this.#redactions > 0) labels.push(...redactedLabels(this.#redactions));
        this.#body = openAnswer(status, headers, {
          request,
          meter,
          down: this.#down,
          ...{ labels, guard },
          batches: looksAtBatches(attempt.call) ? (body) => void this.#countBatches(body, candidate) : null,
          model: candidate.model,
          nowMs: deps.clock.now(),
        });
        return this.#body;
      },
      almostDone: () => this.#tell("note", attempt, "interrupted", this.#metered(attempt)),
      complete: () => {
        if (this.#status >= 400) return this.#record(attempt, "failed", NOTHING);
        const outcome = this.#body?.pipe.broke ? "interrupted" : "completed";
        const answer = outcome === "completed" ? recorder?.take() : null;
        if (answer && cached?.found === null) cache.keep(this.#target.workspace, cached.key, answer);
        return this.#record(attempt, outcome, this.#metered(attempt));
      },
      failed: (pipe, error) => pipe.fail(streamFailure(providerFailure(error, candidate.provider.title, true))),
    };
  }

  #judge(
    { number, turn }: Attempt,
    answer: { status: number; headers: readonly string[] } | null,
    hopeless = false,
  ): RetryVerdict {
    const { limits, random, deps } = this.#engine;
    const { status, headers } = answer ?? { status: null, headers: [] };
    const { hasNext, retries = true } = turn;
    const rules = retries ? limits.retry : { ...limits.retry, retriesMax: 0 };
    return judge({ status, hopeless, headers, attempts: number, hasNext }, rules, deps.clock.now(), random);
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#wake = null;
        resolve();
      };
      const timer = setTimeout(done, delayMs);
      this.#wake = done;
      if (this.#gone) done();
    });
  }

  #metered({ meter, call, cached }: Pick<Attempt, "meter" | "call" | "cached">): MeteredUsage {
    if (cached?.found) return NOTHING; // the provider was not asked
    const metered = meter.result((bytesPerToken) => estimateInputTokens(call, bytesPerToken));
    const { laterMember } = call.dialect;
    if (!metered.estimated || laterMember === undefined || call.member(laterMember) !== true) return metered;
    // The work continues after this answer and its usage is not reported, so the maximum is metered.
    const outputTokens = outputLimit(call) ?? OUTPUT_RESERVE_DEFAULT;
    return { usage: { ...metered.usage, outputTokens }, estimated: true };
  }

  /** The returned promise resolves when the caps have counted the usage too. */
  #record(attempt: Metered, outcome: ModelUsage["outcome"], metered: MeteredUsage): Promise<void> | null {
    if (this.#recorded) return null;
    this.#recorded = true;
    this.#tell("record", attempt, outcome, metered);
    const { usage } = metered;
    if (usage === NO_USAGE) return null;
    const { reservation } = attempt;
    if (!this.#reservation) return reservation && this.#settle(reservation, usage);
    const held = reservation ? [this.#reservation, reservation] : [this.#reservation];
    return Promise.all(held.map((one) => this.#settle(one, usage))).then(() => undefined);
  }

  #settle(reservation: Reservation, { inputTokens, outputTokens }: TokenUsage): Promise<void> {
    return reservation.settle({ input: inputTokens, output: outputTokens }).catch((error) => {
      const { requestId } = this.#target;
      this.#engine.deps.log.error({ error, requestId }, "a token reservation was not settled");
    });
  }

  #tell(
    how: "note" | "record",
    { call, candidate, cached }: Metered,
    outcome: ModelUsage["outcome"],
    { usage, estimated }: MeteredUsage,
  ): void {
    const { deps } = this.#engine;
    const { requestId, workspace, model, subject } = this.#target;
    const { provider, resolved } = candidate;
    if (candidate.prices === undefined) candidate.prices = deps.priceBook.pricesOf(provider.name, candidate.model);
    const { prices } = candidate;
    try {
      deps.usage[how]({
        ...usage,
        ...(this.#asked ?? resolved).ledger,
        ...{ requestId, workspace, model, subject, estimated, outcome },
        servedBy: resolved.model.name,
        provider: provider.name,
        providerModel: candidate.model,
        costNanoUsd: prices ? costNanoUsd(prices, usage) : 0,
        priced: prices !== null,
        fromCache: Boolean(cached?.found),
        status: this.#status,
        stream: call.stream,
        attempts: this.#attempts,
        startedAtMs: this.#startedAtMs,
        firstByteMs: this.#firstByteMs,
        durationMs: deps.clock.now() - this.#startedAtMs,
      });
    } catch (error) {
      // The answer is the caller's; that the ledger failed is for the operator to know.
      deps.log.error({ error, requestId }, "model usage was not recorded");
    }
  }
}

const NO_RULES: readonly GuardrailRules[] = [];

/** Characters of a request's fingerprint: enough to tell apart what one session asks. */
const FINGERPRINT_LENGTH = 16;

const NOT_ASKED = new Set<string>([
  "TOKEN_LIMIT_EXCEEDED",
  "POLICY_VIOLATION",
  "PROVIDER_NOT_CONFIGURED",
  "PROVIDER_ADDRESS_REFUSED",
  "BAD_REQUEST",
]);

/** A wait for the first byte takes minutes: who has waited once should be told. */
const isHopeless = (error: GatewayError | null): boolean =>
  error !== null && (error.code === "PROVIDER_TIMEOUT" || !GATEWAY_ERRORS[error.code].retryable);

const NOTHING: MeteredUsage = { usage: NO_USAGE, estimated: false };
