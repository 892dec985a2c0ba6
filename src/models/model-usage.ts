/** The event that one request adds to the usage ledger. */

import type { LedgerName, Subject } from "./model-records.ts";
import type { TokenUsage } from "./providers/token-usage.ts";

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
  /** True when the answer was kept: no provider was asked. */
  fromCache: boolean;
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
