/** What model requests used, as a few counts each; the request's id makes them one and the same when told again. */
import type { Running } from "../lib/lifecycle.ts";
import type { Store } from "../store/store.ts";
import type { DimensionName } from "./dimensions.ts";
import type { Count, Meter } from "./meter.ts";

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

const DIMENSIONS = Object.keys(MODEL_COUNTS) as ModelCount[];

export interface TokenMeterOptions {
  store: Pick<Store, "resources" | "workspaces">;
  meter: Pick<Meter, "countAll">;
  onError(error: unknown): void;
}

export interface TokenMeter extends Running {
  record(tokens: ModelTokens): void;
}

/**
 * A commit for each request would cost more than the request, and hold up the next. What is gathered is lost when the
 * process is killed; that is little beside the answers that are cut off in the middle then.
 */
const GATHER_MS = 200;
/** So that one commit of them takes some ten milliseconds. */
const GATHERED_MAX = 250;

export function createTokenMeter({ store, meter, onError }: TokenMeterOptions): TokenMeter {
  const open = new Set<Promise<void>>();
  /** The account of a workspace never changes. */
  const accounts = new Map<string, string>();
  let gathered: ModelTokens[] = [];
  let timer: NodeJS.Timeout | null = null;

  /** Requests of one caller to one model. */
  async function count({ workspace, model, subject }: ModelTokens, requests: readonly ModelTokens[]): Promise<void> {
    const accountId = accounts.get(workspace) ?? (await store.workspaces.get(workspace))?.accountId;
    if (accountId === undefined) return;
    accounts.set(workspace, accountId);
    const uuid = (await store.resources.get({ workspace, kind: "model", parent: "" }, model))?.uid ?? "";
    const resource = { accountId, workspace, name: model, uuid };
    await meter.countAll(
      subject ? { ...resource, subject: subjectText(subject) } : resource,
      requests.flatMap(countsOf),
    );
  }

  function flush(): void {
    if (timer) clearTimeout(timer);
    timer = null;
    const together = Map.groupBy(gathered, ({ workspace, model, subject }) =>
      [workspace, model, subject?.type, subject?.id].join("/"),
    );
    gathered = [];
    for (const requests of together.values()) {
      const [first] = requests;
      if (!first) continue;
      const counting = count(first, requests)
        .catch(onError)
        .finally(() => open.delete(counting));
      open.add(counting);
    }
  }

  return {
    record(tokens) {
      gathered.push(tokens);
      if (gathered.length >= GATHERED_MAX) flush();
      else timer ??= setTimeout(flush, GATHER_MS).unref();
    },
    async stop() {
      flush();
      await Promise.all(open);
    },
  };
}

function countsOf(tokens: ModelTokens): Count[] {
  const counts: Count[] = [];
  const atMs = Math.floor(tokens.startedAtMs);
  for (const dimension of DIMENSIONS) {
    const quantity = MODEL_COUNTS[dimension](tokens);
    if (quantity > 0) counts.push({ dimension, quantity, key: tokens.requestId, atMs });
  }
  return counts;
}

/** Who asked, as one text of the ledger, and back. */
const subjectText = ({ type, id }: { type: string; id: string }): string => `${type}/${id}`;

export function subjectFromText(text: string): { type: string; id: string } | null {
  const slash = text.indexOf("/");
  return slash < 0 ? null : { type: text.slice(0, slash), id: text.slice(slash + 1) };
}
