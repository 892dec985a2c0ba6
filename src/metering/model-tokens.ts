/** Tokens of model requests, as three counts each; the request's id makes them one and the same when told again. */
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
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
  startedAtMs: number;
}

const COUNTS = {
  inputTokens: "model_input_tokens_count",
  outputTokens: "model_output_tokens_count",
  cachedInputTokens: "model_cached_tokens_count",
} as const satisfies Partial<Record<keyof ModelTokens, DimensionName>>;

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

  async function count(tokens: ModelTokens): Promise<void> {
    const { workspace, model, requestId, startedAtMs } = tokens;
    const accountId = (await store.workspaces.get(workspace))?.accountId;
    if (accountId === undefined) return;
    const uuid = (await store.resources.get({ workspace, kind: "model", parent: "" }, model))?.uid ?? "";
    const used = (Object.keys(COUNTS) as (keyof typeof COUNTS)[]).filter((field) => tokens[field] > 0);
    await Promise.all(
      used.map((field) =>
        meter.count({ accountId, workspace, name: model, uuid }, COUNTS[field], tokens[field], {
          key: requestId,
          atMs: Math.floor(startedAtMs),
        }),
      ),
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
