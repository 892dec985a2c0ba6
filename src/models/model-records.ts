/** What the engine is told about a model and its surroundings. Plain data: whoever wires it reads the store. */
import type { BalanceRules } from "../contract/model-balance.ts";
import type { CacheRules } from "../contract/model-cache.ts";
import type { GuardrailRules } from "../contract/model-guardrails.ts";
import type { ModelPrices } from "../contract/model-prices.ts";

export interface ModelRecord {
  name: string;
  spec: {
    enabled?: boolean | undefined;
    runtime?:
      | {
          type?: string | undefined;
          /** The provider's name for the model; the resource's own name when absent. */
          model?: string | undefined;
          endpointName?: string | undefined;
          organization?: string | undefined;
        }
      | undefined;
    /** Names of models of the same workspace, tried in this order when this one fails. */
    fallbacks?: readonly string[] | undefined;
  };
}

export interface ProviderConnection {
  name: string;
  integration: string;
  config: Readonly<Record<string, string>>;
  /** In the clear: it goes into a request header and nowhere else. */
  secret: Readonly<Record<string, string>>;
}

export interface PolicyRecord {
  name: string;
  type: string;
  resourceTypes?: readonly string[] | undefined;
  maxTokens?: Record<string, unknown> | undefined;
  locations?: readonly { type?: string | undefined; name?: string | undefined }[] | undefined;
}

export interface ResolvedModel {
  model: ModelRecord;
  /** Under what the usage ledger knows the model. */
  ledger: LedgerName;
  /** Null when the model names none. */
  connection: ProviderConnection | null;
  policies: readonly PolicyRecord[];
  /** Requests are divided between this model and others. */
  balance?: BalanceRules | undefined;
  /** What requests must not carry to the provider; of a member of a balance, those of the asked model too. */
  guardrails?: readonly GuardrailRules[] | undefined;
  /** Answers are kept for requests that are the same. */
  cache?: CacheRules | undefined;
  /** Prices of this model; the price book's when absent. */
  prices?: ModelPrices | undefined;
}

export interface LedgerName {
  accountId: string;
  modelUid: string;
}

/** The caller and its API key, if any: written to the usage ledger as given. */
export interface Subject {
  id: string;
  type: string;
}

export interface ModelTarget {
  workspace: string;
  model: string;
  /** The raw path and query behind the model's name; empty, or starting with / or ?. */
  subPath: string;
  subject: Subject | null;
  requestId: string;
  /** Rejects when the caller may not ask models of the workspace any more: sessions outlive keys and rights. */
  recheck?(workspace: string): Promise<void>;
}
