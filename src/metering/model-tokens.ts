/** What model requests used, as a few counts each; the request's id makes them one and the same when told again. */
import { PlatformError } from "../contract/errors.ts";
import type { Running } from "../lib/lifecycle.ts";
import type { DimensionName } from "./dimensions.ts";
import type { Count, Meter } from "./meter.ts";
import { type ModelTokens, openTokenJournal } from "./token-journal.ts";

/** What is counted of a request, in base units. */
const MODEL_COUNTS = {
  model_requests_count: () => 1,
  model_unpriced_requests_count: ({ priced }) => (priced ? 0 : 1),
  model_estimated_requests_count: ({ estimated }) => (estimated ? 1 : 0),
  model_input_tokens_count: ({ inputTokens }) => inputTokens,
  model_output_tokens_count: ({ outputTokens }) => outputTokens,
  model_cached_tokens_count: ({ cachedInputTokens }) => cachedInputTokens,
  model_provider_cost_usd: ({ costNanoUsd }) => costNanoUsd,
} as const satisfies Partial<Record<DimensionName, (tokens: ModelTokens) => number>>;

export type ModelCount = keyof typeof MODEL_COUNTS;

const DIMENSIONS = Object.keys(MODEL_COUNTS) as ModelCount[];

export interface TokenMeter extends Running {
  /** What a request has used as far as is known: it is recorded so if the process does not live to its end. */
  note(tokens: ModelTokens): void;
  /** What a request has used in all. On return a kill does not lose it, and soon it is in the ledger. */
  record(tokens: ModelTokens): void;
}

/** A commit for each request would cost more than the request, and hold up the next: until then the journal has it. */
const GATHER_MS = 200;
/** So that one commit of them takes some ten milliseconds. */
const GATHERED_MAX = 250;
/** A database that was away is asked again after this. */
const RETRY_MS = 5000;

/** What an earlier process left in the folder is recorded first. */
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
  /** What the ledger could not take when it was told; the journal has it meanwhile. */
  const behind: ModelTokens[] = [...journal.left];
  let retry: NodeJS.Timeout | null = null;

  /** Requests of one caller to one model. */
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
      // What will never be taken keeps nothing else out, and is told once: not again at every start.
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

  /** As many at a time as in life: a database that was away for long has left more than one commit should hold. */
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
      if (retry) clearTimeout(retry); // the next start has it
      journal.close();
    },
  };
}

/** It would be refused whenever it is told. */
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
