/** What model requests used, as a few counts each; the request's id makes them one and the same when told again. */
import type { Running } from "../lib/lifecycle.ts";
import type { Store } from "../store/store.ts";
import type { DimensionName } from "./dimensions.ts";
import type { Meter } from "./meter.ts";

/** What is known of a request once it is over. */
export interface ModelTokens {
  requestId: string;
  workspace: string;
  /** The model that was asked. */
  model: string;
  subject: { type: string; id: string } | null;
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
  /** What the provider charges for it, in nano-USD. */
  costNanoUsd: number;
  /** False when nobody knows a price, and the cost of zero says nothing. */
  priced: boolean;
  startedAtMs: number;
}

/** What is counted of a request, in base units. */
const MODEL_COUNTS = {
  model_requests_count: () => 1,
  model_unpriced_requests_count: ({ priced }) => (priced ? 0 : 1),
  model_input_tokens_count: ({ inputTokens }) => inputTokens,
  model_output_tokens_count: ({ outputTokens }) => outputTokens,
  model_cached_tokens_count: ({ cachedInputTokens }) => cachedInputTokens,
  model_provider_cost_usd: ({ costNanoUsd }) => costNanoUsd,
} as const satisfies Partial<Record<DimensionName, (tokens: ModelTokens) => number>>;

export type ModelCount = keyof typeof MODEL_COUNTS;

export interface TokenMeterOptions {
  store: Pick<Store, "resources" | "workspaces">;
  meter: Pick<Meter, "count">;
  onError(error: unknown): void;
}

export interface TokenMeter extends Running {
  record(tokens: ModelTokens): void;
}

export function createTokenMeter({ store, meter, onError }: TokenMeterOptions): TokenMeter {
  const open = new Set<Promise<void>>();
  /** The account of a workspace never changes. */
  const accounts = new Map<string, string>();

  async function count(tokens: ModelTokens): Promise<void> {
    const { workspace, model, requestId, startedAtMs, subject } = tokens;
    const accountId = accounts.get(workspace) ?? (await store.workspaces.get(workspace))?.accountId;
    if (accountId === undefined) return;
    accounts.set(workspace, accountId);
    const uuid = (await store.resources.get({ workspace, kind: "model", parent: "" }, model))?.uid ?? "";
    const metered = { accountId, workspace, name: model, uuid, ...(subject ? { subject: subjectText(subject) } : {}) };
    const at = { key: requestId, atMs: Math.floor(startedAtMs) };
    await Promise.all(
      (Object.keys(MODEL_COUNTS) as ModelCount[]).map(async (dimension) => {
        const quantity = MODEL_COUNTS[dimension](tokens);
        if (quantity > 0) await meter.count(metered, dimension, quantity, at);
      }),
    );
  }

  return {
    record(tokens) {
      const counting = count(tokens)
        .catch(onError)
        .finally(() => open.delete(counting));
      open.add(counting);
    },
    async stop() {
      await Promise.all(open);
    },
  };
}

/** Who asked, as one text of the ledger, and back. */
const subjectText = ({ type, id }: { type: string; id: string }): string => `${type}/${id}`;

export function subjectFromText(text: string): { type: string; id: string } | null {
  const slash = text.indexOf("/");
  return slash < 0 ? null : { type: text.slice(0, slash), id: text.slice(slash + 1) };
}
