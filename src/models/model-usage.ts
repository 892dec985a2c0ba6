/** The event that one request adds to the usage ledger. */

import type { FinishedBatch } from "./batches/batch-usage.ts";
import type { LedgerName, Subject } from "./model-records.ts";
import { costNanoUsd, type ModelPriceBook } from "./price-book.ts";
import type { TokenUsage } from "./providers/token-usage.ts";
import type { UpstreamCandidate } from "./upstream-request.ts";

export interface ModelUsage extends TokenUsage, LedgerName {
  requestId: string;
  workspace: string;
  /** The model that was asked. */
  model: string;
  /** The model that answered: another one after a fallback. */
  servedBy: string;
  provider: string;
  /** The provider's name for the model. */
  providerModel: string;
  subject: Subject | null;
  /** True when some of the counts were not reported by the provider. */
  estimated: boolean;
  costNanoUsd: number;
  /** False when nobody knows a price, and the cost of zero says nothing. */
  priced: boolean;
  /** True when the answer was kept for the same request: no provider was asked. */
  fromCache: boolean;
  /** True when the answer was kept for a question with the same meaning: only its embedding was asked for. */
  fromSimilar: boolean;
  /** Status of the answer; 0 when none came. */
  status: number;
  outcome: "completed" | "failed" | "interrupted" | "aborted";
  stream: boolean;
  /** Requests sent to providers, retries and fallbacks included. */
  attempts: number;
  startedAtMs: number;
  /** Until the provider began to answer; null when it never did. */
  firstByteMs: number | null;
  durationMs: number;
}

/** A finished batch as one request of the caller who made it, at the time when it ended. */
export function batchUsage(
  { workspace, model, subject, requestId, finishedAtMs, usage }: FinishedBatch,
  { resolved, provider, model: providerModel }: UpstreamCandidate,
  book: ModelPriceBook,
): ModelUsage {
  const prices = resolved.prices ?? book.pricesOf(provider.name, providerModel);
  return {
    ...usage,
    ...resolved.ledger,
    ...{ requestId, workspace, model, subject, providerModel },
    servedBy: model,
    provider: provider.name,
    estimated: false,
    costNanoUsd: prices ? costNanoUsd(prices, usage) : 0,
    priced: prices !== null,
    fromCache: false,
    fromSimilar: false,
    status: 200,
    outcome: "completed",
    stream: false,
    attempts: 1,
    startedAtMs: finishedAtMs,
    firstByteMs: null,
    durationMs: 0,
  };
}
