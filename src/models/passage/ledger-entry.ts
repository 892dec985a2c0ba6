/** The one entry that a request leaves in the usage ledger, and the caps that count the same usage. */
import type { CacheUse } from "../cache/answer-cache.ts";
import { type ClientCall, estimateInputTokens, outputLimit } from "../client-call.ts";
import type { ModelGatewayDeps } from "../gateway-deps.ts";
import type { ModelTarget, ResolvedModel } from "../model-records.ts";
import type { ModelUsage } from "../model-usage.ts";
import { costNanoUsd } from "../price-book.ts";
import { NO_USAGE, type TokenUsage } from "../providers/token-usage.ts";
import { OUTPUT_RESERVE_DEFAULT, type Reservation } from "../token-budget.ts";
import type { UpstreamCandidate } from "../upstream-request.ts";
import type { MeteredUsage, UsageMeter } from "../usage-meter.ts";

/** The attempt that an entry is about. */
export interface EnteredAttempt {
  call: ClientCall;
  candidate: UpstreamCandidate;
  reservation: Reservation | null;
  /** Null for a model, or a request, without a cache. */
  cached?: CacheUse | null;
}

export type Outcome = ModelUsage["outcome"];

/** Usage of an attempt that the provider did not answer. */
export const NOTHING: MeteredUsage = { usage: NO_USAGE, estimated: false };

export class LedgerEntry {
  readonly #deps: ModelGatewayDeps;
  readonly startedAtMs: number;
  target: ModelTarget;
  /** The model that was asked: the first that is tried. */
  asked: ResolvedModel | null = null;
  /** Made so far, at all models together. */
  attempts = 0;
  status = 0;
  firstByteMs: number | null = null;
  /** Of the asked model's policies, where several models share its requests. */
  reservation: Reservation | null = null;
  #recorded = false;

  constructor(deps: ModelGatewayDeps, target: ModelTarget) {
    this.#deps = deps;
    this.target = target;
    this.startedAtMs = deps.clock.now();
  }

  get recorded(): boolean {
    return this.#recorded;
  }

  /** The usage that counts if the server ends now. */
  note(attempt: EnteredAttempt, outcome: Outcome, metered: MeteredUsage): void {
    this.#tell("note", attempt, outcome, metered);
  }

  /** Only the first call counts. The returned promise resolves when the caps have counted the usage too. */
  record(attempt: EnteredAttempt, outcome: Outcome, metered: MeteredUsage): Promise<void> | null {
    if (this.#recorded) return null;
    this.#recorded = true;
    this.#tell("record", attempt, outcome, metered);
    const { usage } = metered;
    if (usage === NO_USAGE) return null;
    const { reservation } = attempt;
    if (!this.reservation) return reservation && this.#settle(reservation, usage);
    const held = reservation ? [this.reservation, reservation] : [this.reservation];
    return Promise.all(held.map((one) => this.#settle(one, usage))).then(() => undefined);
  }

  #settle(reservation: Reservation, { inputTokens, outputTokens }: TokenUsage): Promise<void> {
    return reservation.settle({ input: inputTokens, output: outputTokens }).catch((error) => {
      const { requestId } = this.target;
      this.#deps.log.error({ error, requestId }, "a token reservation was not settled");
    });
  }

  #tell(
    how: "note" | "record",
    { call, candidate, cached }: EnteredAttempt,
    outcome: Outcome,
    { usage, estimated }: MeteredUsage,
  ): void {
    const deps = this.#deps;
    const { requestId, workspace, model, subject } = this.target;
    const { provider, resolved } = candidate;
    if (candidate.prices === undefined) candidate.prices = deps.priceBook.pricesOf(provider.name, candidate.model);
    const { prices } = candidate;
    try {
      deps.usage[how]({
        ...usage,
        ...(this.asked ?? resolved).ledger,
        ...{ requestId, workspace, model, subject, estimated, outcome },
        servedBy: resolved.model.name,
        provider: provider.name,
        providerModel: candidate.model,
        costNanoUsd: prices ? costNanoUsd(prices, usage) : 0,
        priced: prices !== null,
        fromCache: Boolean(cached?.found && cached.similarity === null),
        fromSimilar: Boolean(cached?.found && cached.similarity !== null),
        status: this.status,
        stream: call.stream,
        attempts: this.attempts,
        startedAtMs: this.startedAtMs,
        firstByteMs: this.firstByteMs,
        durationMs: deps.clock.now() - this.startedAtMs,
      });
    } catch (error) {
      // The answer is the caller's; that the ledger failed is for the operator to know.
      deps.log.error({ error, requestId }, "model usage was not recorded");
    }
  }
}

/** What an attempt used, as far as its answer has told. */
export function meteredUsage(meter: UsageMeter, call: ClientCall, cached: CacheUse | null): MeteredUsage {
  if (cached?.found) return NOTHING; // the provider was not asked
  const metered = meter.result((bytesPerToken) => estimateInputTokens(call, bytesPerToken));
  const { later, laterMember } = call.dialect;
  const goesOn = later === true || (laterMember !== undefined && call.member(laterMember) === true);
  if (!metered.estimated || !goesOn) return metered;
  // The work continues after this answer and its usage is not reported, so the maximum is metered.
  const outputTokens = outputLimit(call) ?? OUTPUT_RESERVE_DEFAULT;
  return { usage: { ...metered.usage, outputTokens }, estimated: true };
}
