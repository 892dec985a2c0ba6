/** Counts the usage of model requests. The request's id is the key, so recording a request again changes nothing. */
import { PlatformError } from "../contract/errors.ts";
import type { Running } from "../lib/lifecycle.ts";
import type { DimensionName } from "./dimensions.ts";
import type { Count, Meter } from "./meter.ts";
import { type ModelTokens, openTokenJournal } from "./token-journal.ts";

/** The counted dimensions of a request, in base units. */
const MODEL_COUNTS = {
  model_requests_count: () => 1,
  model_unpriced_requests_count: ({ priced }) => (priced ? 0 : 1),
  model_estimated_requests_count: ({ estimated }) => (estimated ? 1 : 0),
  model_cache_hits_count: ({ fromCache }) => (fromCache ? 1 : 0),
  model_similar_hits_count: ({ fromSimilar }) => (fromSimilar ? 1 : 0),
  model_input_tokens_count: ({ inputTokens }) => inputTokens,
  model_output_tokens_count: ({ outputTokens }) => outputTokens,
  model_cached_tokens_count: ({ cachedInputTokens }) => cachedInputTokens,
  model_provider_cost_usd: ({ costNanoUsd }) => costNanoUsd,
} as const satisfies Partial<Record<DimensionName, (tokens: ModelTokens) => number>>;

export type ModelCount = keyof typeof MODEL_COUNTS;

export const MODEL_DIMENSIONS = Object.keys(MODEL_COUNTS) as ModelCount[];

export interface TokenMeter extends Running {
  /** Writes the usage known so far to the journal; it is recorded if the process dies before the request ends. */
  note(tokens: ModelTokens): void;
  /** Records the final usage of a request. On return it survives a kill; soon after it is in the ledger. */
  record(tokens: ModelTokens): void;
}

/**
 * Time to collect requests for one commit; a commit per request would cost more than the request. Until the commit, the
 * journal keeps them.
 */
const GATHER_MS = 200;
/** Most requests per commit, so that it takes about ten milliseconds. */
const GATHERED_MAX = 250;
/** Pause before a retry when the database does not answer. */
const RETRY_MS = 5000;

/** Starts the meter. Requests that an earlier process left in the journal are recorded first. */
export async function startTokenMeter(
  meter: Pick<Meter, "countAll">,
  folder: string,
  onError: (error: unknown) => void,
  retryMs = RETRY_MS,
): Promise<TokenMeter> {
  const journal = openTokenJournal(folder, onError);
  const open = new Set<Promise<void>>();
  let gathered: ModelTokens[] = [];
  let timer: NodeJS.Timeout | null = null;
  /** Requests that the ledger could not take at first; the journal keeps them meanwhile. */
  const behind: ModelTokens[] = [...journal.left];
  let retry: NodeJS.Timeout | null = null;

  /** Counts requests of one caller to one model. */
  async function count(one: ModelTokens, requests: readonly ModelTokens[]): Promise<void> {
    const { accountId, workspace, model: name, modelUid: uuid, subject } = one;
    const resource = { accountId, workspace, name, uuid };
    try {
      await meter.countAll(
        subject ? { ...resource, subject: subjectText(subject) } : resource,
        requests.flatMap(countsOf),
      );
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // A request that the ledger will never accept must not block others. It is reported once, not at every start.
      if (requests.length > 1) {
        for (const request of requests) await count(request, [request]);
        return;
      }
      onError(refused(one, error));
    }
    for (const { requestId } of requests) journal.forget(requestId);
  }

  async function countEach(all: readonly ModelTokens[]): Promise<void> {
    const together = Map.groupBy(all, ({ workspace, modelUid, subject }) =>
      [workspace, modelUid, subject?.type, subject?.id].join("/"),
    );
    const counting = [...together.values()].map(async (requests) => {
      const [first] = requests;
      try {
        if (first) await count(first, requests);
      } catch (error) {
        onError(error);
        behind.push(...requests);
        retry ??= setTimeout(() => follow(catchUp()), retryMs).unref();
      }
    });
    await Promise.all(counting);
  }

  /** Retries in bounded batches: after a long outage more requests wait than one commit should hold. */
  async function catchUp(): Promise<void> {
    retry = null;
    while (behind.length > 0 && retry === null) await countEach(behind.splice(0, GATHERED_MAX));
  }

  function follow(work: Promise<void>): void {
    const followed = work.finally(() => open.delete(followed));
    open.add(followed);
  }

  function flush(): void {
    if (timer) clearTimeout(timer);
    timer = null;
    follow(countEach(gathered));
    gathered = [];
  }

  function note(tokens: ModelTokens): void {
    try {
      journal.write(tokens);
    } catch (error) {
      onError(error);
    }
  }

  await catchUp();
  return {
    note,
    record(tokens) {
      note(tokens);
      gathered.push(tokens);
      if (gathered.length >= GATHERED_MAX) flush();
      else timer ??= setTimeout(flush, GATHER_MS).unref();
    },
    async stop() {
      flush();
      await Promise.all(open);
      if (retry) clearTimeout(retry); // the next start records them
      journal.close();
    },
  };
}

/** True for an error that every retry would meet. */
const isRefusal = (error: unknown): boolean =>
  error instanceof RangeError || (error instanceof PlatformError && error.code === "invalid_field");

const refused = ({ requestId, model, startedAtMs, inputTokens, outputTokens }: ModelTokens, cause: unknown): Error =>
  new Error(
    `request ${requestId} to ${model} at ${startedAtMs} is not counted (${inputTokens} tokens in, ${outputTokens} out)`,
    { cause },
  );

function countsOf(tokens: ModelTokens): Count[] {
  const counts: Count[] = [];
  const atMs = Math.floor(tokens.startedAtMs);
  for (const dimension of MODEL_DIMENSIONS) {
    const quantity = MODEL_COUNTS[dimension](tokens);
    if (quantity > 0) counts.push({ dimension, quantity, key: tokens.requestId, atMs });
  }
  return counts;
}

/** The caller as one text for the ledger; subjectFromText parses it. */
const subjectText = ({ type, id }: { type: string; id: string }): string => `${type}/${id}`;

export function subjectFromText(text: string): { type: string; id: string } | null {
  const slash = text.indexOf("/");
  return slash < 0 ? null : { type: text.slice(0, slash), id: text.slice(slash + 1) };
}
