/** What the passages of all requests share. */
import type { Downstream } from "../../http/downstream.ts";
import type { AnswerCache, CacheUse } from "../cache/answer-cache.ts";
import type { ModelGatewayDeps, ModelGatewayLimits } from "../gateway-deps.ts";
import type { WebhookDeps } from "../guardrails/webhook.ts";
import type { HeldBytes } from "../held-bytes.ts";
import type { ModelTarget } from "../model-records.ts";
import type { UpstreamCandidate } from "../upstream-request.ts";
import type { Upstream, Upstreams } from "../upstreams.ts";

export interface PassageEngine {
  deps: ModelGatewayDeps;
  limits: ModelGatewayLimits;
  random: () => number;
  upstreams: Upstreams;
  held: HeldBytes;
  upstreamOf(candidate: UpstreamCandidate): Upstream;
  labelsOf(candidate: UpstreamCandidate, requestId: string, attempts: number): string[];
  /** The session that the caller names; see `maxTokens.per`. */
  sessionOf(down: Downstream): string | null;
  cache: AnswerCache;
  /** Asks a model of the target's workspace for the embedding of a text, as the target's caller. */
  embed(target: ModelTarget, model: string, text: string): Embedding;
  /** The field that says how the cache was used. */
  cacheLabels(use: CacheUse): string[];
  /** Asks the webhooks of guardrails. */
  webhooks: WebhookDeps;
  /** The field that says how many parts of the request were replaced. */
  redactedLabels(count: number): string[];
}

export interface Embedding {
  /** The parsed answer of the model; rejects when there is none. */
  answer: Promise<unknown>;
  /** The caller went away. */
  leave(): void;
}
