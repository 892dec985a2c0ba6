/**
 * One caller's request on its way through: the attempts at one model after the other, what they used, and the one
 * entry in the usage ledger at the end.
 */
import { hash } from "node:crypto";
import { GATEWAY_ERRORS, GatewayError } from "../../contract/gateway-errors.ts";
import type { GuardrailRules } from "../../contract/model-guardrails.ts";
import type { Downstream } from "../../http/downstream.ts";
import { admitRequest } from "../admission.ts";
import { openAnswer, streamFailure } from "../answer-writer.ts";
import type { Visit } from "../balance/health.ts";
import { looksAtBatches } from "../batches/batch-mark.ts";
import { countBatches, markedBatch } from "../batches/batch-passage.ts";
import { AnswerRecorder, type CacheUse, keptUpstream, useCache } from "../cache/answer-cache.ts";
import { useSimilar } from "../cache/semantic-cache.ts";
import { type ClientCall, estimateInputTokens, outputLimit } from "../client-call.ts";
import { type ExchangeJudge, type ExchangeResult, ModelExchange, type OpenedBody } from "../exchange.ts";
import { type AnswerGuard, Guard } from "../guardrails/guard.ts";
import type { ModelTarget } from "../model-records.ts";
import { isTrouble, judge, type RetryVerdict } from "../retry.ts";
import type { Reservation } from "../token-budget.ts";
import { baseUrlOf, type UpstreamCandidate, type UpstreamRequest, upstreamRequest } from "../upstream-request.ts";
import { providerFailure, type Upstream } from "../upstreams.ts";
import { type MeteredUsage, UsageMeter } from "../usage-meter.ts";
import type { Embedding, PassageEngine } from "./engine.ts";
import { LedgerEntry, meteredUsage, NOTHING } from "./ledger-entry.ts";

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

export class Passage {
  readonly #engine: PassageEngine;
  readonly #down: Downstream;
  readonly #entry: LedgerEntry;
  #gone = false;
  #current: ModelExchange | null = null;
  #begun = false;
  #body: OpenedBody | null = null;
  #wake: (() => void) | null = null;
  #redactions = 0;
  #guard: Guard | null = null;

  constructor(engine: PassageEngine, down: Downstream, target: ModelTarget) {
    this.#engine = engine;
    this.#down = down;
    this.#entry = new LedgerEntry(engine.deps, target);
  }

  /** The model that the request is for, where only its body names that. */
  aim(target: ModelTarget): void {
    this.#entry.target = target;
  }

  /** True when the caller went away. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Made so far, at all models together. */
  get attempts(): number {
    return this.#entry.attempts;
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
    this.#entry.asked ??= candidate.resolved;
    try {
      const provider = this.#engine.upstreamOf(candidate);
      const rules = this.#rulesFor(candidate);
      const guarded = rules.length === 0 ? asked : await this.#guarded(asked, rules);
      const passed = markedBatch(guarded, candidate, this.#entry.target, this.#engine.deps);
      const guard = this.#guard?.answer(passed, rules) ?? null;
      const request = upstreamRequest(passed, candidate, provider.basePath);
      const call = request.front?.call ?? passed;
      if (candidate.resolved.policies.length > 0) reservation = await this.#admit(call, candidate);
      const cached = candidate.resolved.cache ? await this.#useCache(call, candidate, request) : null;
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
          this.#entry.record(attempt, "aborted", NOTHING);
          return null;
        }
      }
    } catch (error) {
      // Who was recorded was asked: a guardrail that refuses an answer does not lead to another model.
      if (error instanceof GatewayError && NOT_ASKED.has(error.code) && !this.#entry.recorded) return error;
      throw error;
    } finally {
      // Attempts that used tokens have already settled; the rest of the reservation is released.
      if (reservation) await reservation.release();
    }
  }

  /** The rules of the asked model hold for its fallbacks, too. */
  #rulesFor({ resolved }: UpstreamCandidate): readonly GuardrailRules[] {
    const first = this.#entry.asked ?? resolved;
    if (!first.guardrails && !resolved.guardrails) return NO_RULES;
    return [...new Set([...(first.guardrails ?? []), ...(resolved.guardrails ?? [])])];
  }

  async #guarded(asked: ClientCall, rules: readonly GuardrailRules[]): Promise<ClientCall> {
    const { requestId, workspace, model, subject } = this.#entry.target;
    const session = this.#engine.sessionOf(this.#down);
    this.#guard ??= new Guard(this.#engine.webhooks, ({ path }) => ({
      ...{ requestId, workspace, model, path, subject, session },
    }));
    const { call, redactions } = await this.#guard.request(asked, rules);
    this.#redactions = redactions;
    return call;
  }

  /** Checks the policies of the asked model once, whichever models then serve the request. */
  async admitForAll(call: ClientCall, candidate: UpstreamCandidate): Promise<void> {
    if (candidate.resolved.policies.length > 0) this.#entry.reservation = await this.#admit(call, candidate);
  }

  async releaseForAll(): Promise<void> {
    await this.#entry.reservation?.release();
  }

  #admit(call: ClientCall, { resolved }: UpstreamCandidate): Promise<Reservation | null> {
    const tokens = () => (call.dialect.free ? null : { input: estimateInputTokens(call), output: outputLimit(call) });
    const { workspace, subject } = this.#entry.target;
    const session = () => this.#engine.sessionOf(this.#down);
    const fingerprint = () => hash("sha256", call.body, "base64url").slice(0, FINGERPRINT_LENGTH);
    return admitRequest({ workspace, resolved, tokens, subject, session, fingerprint }, this.#engine.deps);
  }

  async #useCache(call: ClientCall, candidate: UpstreamCandidate, request: UpstreamRequest): Promise<CacheUse | null> {
    const { resolved, provider } = candidate;
    const { workspace, subject } = this.#entry.target;
    const rules = resolved.cache;
    if (!rules) return null;
    const baseUrl = provider.local ? provider.name : baseUrlOf(candidate);
    const { cache, embed } = this.#engine;
    const question = { call, request, rules, workspace, subject, baseUrl, ledger: resolved.ledger };
    const use = useCache(cache, question);
    if (!rules.semantic || use === null || use.found) return use;
    return useSimilar(cache, question, use, (model, text) => this.#leaveWith(embed(this.#entry.target, model, text)));
  }

  /** A caller that goes away waits for no embedding either. */
  #leaveWith({ answer, leave }: Embedding): Promise<unknown> {
    this.#wake = leave;
    if (this.#gone) leave();
    return answer.finally(() => {
      this.#wake = null;
    });
  }

  /** The request ends with what the last model left behind. */
  recordFailure({ candidate, collected }: Failure, call: ClientCall): void {
    this.#entry.status = collected?.status ?? 0;
    this.#entry.record({ call, candidate, reservation: null }, "failed", NOTHING);
  }

  async #send(attempt: Attempt): Promise<Failure | null> {
    const { limits, upstreams, held } = this.#engine;
    const { candidate, request, upstream } = attempt;
    const { firstByteTimeoutMs, idleTimeoutMs } = limits;
    const exchange = new ModelExchange(
      { upstream, request, down: this.#down, sweeper: upstreams.sweeper, held, firstByteTimeoutMs, idleTimeoutMs },
      this.#judgeOf(attempt),
    );
    this.#entry.attempts += 1;
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
        this.#entry.record(attempt, "aborted", result.sent ? meteredOf(attempt) : NOTHING);
        return null;
      case "interrupted": {
        this.#entry.record(attempt, "interrupted", meteredOf(attempt));
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
      if (result.sent && this.#entry.firstByteMs === null)
        visit.abandoned(this.#engine.deps.clock.now() - this.#entry.startedAtMs);
      return;
    }
    const failed =
      result.kind === "delivered"
        ? isTrouble(this.#entry.status) || this.#body?.pipe.broke
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
        this.#entry.firstByteMs ??= deps.clock.now() - this.#entry.startedAtMs;
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
        this.#entry.status = status;
        const labels = labelsOf(candidate, this.#entry.target.requestId, this.#entry.attempts);
        if (cached) labels.push(...cacheLabels(cached));
        if (this.#redactions > 0) labels.push(...redactedLabels(this.#redactions));
        this.#body = openAnswer(status, headers, {
          request,
          meter,
          down: this.#down,
          ...{ labels, guard },
          batches: looksAtBatches(attempt.call)
            ? (body) => void countBatches(body, candidate, this.#entry.target, deps)
            : null,
          model: candidate.model,
          nowMs: deps.clock.now(),
        });
        return this.#body;
      },
      almostDone: () => this.#entry.note(attempt, "interrupted", meteredOf(attempt)),
      complete: () => {
        if (this.#entry.status >= 400) return this.#entry.record(attempt, "failed", NOTHING);
        const outcome = this.#body?.pipe.broke ? "interrupted" : "completed";
        const answer = outcome === "completed" ? recorder?.take() : null;
        if (answer && cached?.found === null)
          cache.keep(this.#entry.target.workspace, cached.key, answer, cached.meaning);
        return this.#entry.record(attempt, outcome, meteredOf(attempt));
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

const meteredOf = ({ meter, call, cached }: Attempt): MeteredUsage => meteredUsage(meter, call, cached);

/** A wait for the first byte takes minutes: who has waited once should be told. */
const isHopeless = (error: GatewayError | null): boolean =>
  error !== null && (error.code === "PROVIDER_TIMEOUT" || !GATEWAY_ERRORS[error.code].retryable);
