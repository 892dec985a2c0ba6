import type { Place } from "../contract/placement.ts";
import type { Outbound } from "../lib/network/outbound-http.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { EndedRequest } from "../metering/resource-metrics/recorder.ts";
import type { ResolvedModel } from "./model-records.ts";
import type { ModelUsage } from "./model-usage.ts";
import type { ModelPriceBook } from "./price-book.ts";
import { RETRY_DEFAULTS, type RetryRules } from "./retry.ts";
import type { TokenBudget } from "./token-budget.ts";

/** Everything the engine needs from outside, as plain functions. */
export interface ModelGatewayDeps {
  /** Null when the workspace has no such model. */
  resolveModel(workspace: string, name: string): Promise<ResolvedModel | null> | ResolvedModel | null;
  usage: {
    /** Records usage that is known before the request ends, in case the request is cut off. */
    note(event: ModelUsage): void;
    /** On return it is safe: the caller is told the rest of its answer only then. */
    record(event: ModelUsage): void;
  };
  /** Called after a request to the model with this uid. */
  ended?(uid: string, request: EndedRequest): void;
  budget: TokenBudget;
  priceBook: ModelPriceBook;
  clock: Clock;
  log: {
    debug(fields: Record<string, unknown>, message: string): void;
    warn(fields: Record<string, unknown>, message: string): void;
    error(fields: Record<string, unknown>, message: string): void;
  };
  /** HTTP to addresses that tenants name: webhooks of guardrails. */
  outbound: Pick<Outbound, "request">;
  /** Signs what says who made a batch. */
  batchKey: Buffer;
  /** Whether connections may lead to private addresses. Link-local ones never are. */
  privateAddresses: boolean;
  /** Null when the platform does not know where it runs. */
  place: Place | null;
  /** Word for headers: X-{brand}-Model and so on. */
  brand: string;
  /** Address of the page that explains error codes. */
  docsUrl: string;
  random?: () => number;
  limits?: Partial<ModelGatewayLimits>;
}

export interface ModelGatewayLimits {
  bodyMaxBytes: number;
  /** All bodies held at one time; beyond it callers are told to come back. */
  heldMaxBytes: number;
  connectTimeoutMs: number;
  /** Until a provider begins to answer: long reasoning without a stream takes minutes. */
  firstByteTimeoutMs: number;
  /** Between two pieces of an answer. */
  idleTimeoutMs: number;
  /** Longest silence of a realtime session; providers send pings. */
  sessionIdleMs: number;
  /** Longest realtime session; providers end theirs after an hour. */
  sessionTotalMs: number;
  /** Distance between two looks at the deadlines. */
  tickMs: number;
  retry: RetryRules;
}

export const LIMIT_DEFAULTS: ModelGatewayLimits = {
  bodyMaxBytes: 32 * 1024 * 1024,
  heldMaxBytes: 512 * 1024 * 1024,
  connectTimeoutMs: 10_000,
  firstByteTimeoutMs: 600_000,
  idleTimeoutMs: 300_000,
  sessionIdleMs: 600_000,
  sessionTotalMs: 7_200_000,
  tickMs: 1000,
  retry: RETRY_DEFAULTS,
};
