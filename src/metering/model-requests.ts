/** The single requests to a model, newest first: the events of the ledger that share a request's id, as one row. */
import type { CursorCodec } from "../contract/cursor.ts";
import { type Clock, DAY_MS, toIso } from "../lib/time/clock.ts";
import type { Usage } from "../store/usage/usage.ts";
import { usageOf } from "./dimensions.ts";
import { placeOf } from "./events-page.ts";
import { COUNT_KEY } from "./meter.ts";
import { MODEL_DIMENSIONS, type ModelCount, subjectFromText } from "./model-tokens.ts";
import { parseWindow } from "./window.ts";

/** Length of the window when the query gives none. */
const WINDOW_DEFAULT_MS = DAY_MS;

export interface ModelRequestsQuery {
  startTime?: string | undefined;
  endTime?: string | undefined;
  limit: number;
  cursor?: string | undefined;
}

export interface ModelRequestsDependencies {
  ledger: Pick<Usage, "events" | "eventsWithKeys">;
  cursors: CursorCodec;
  clock: Clock;
}

export async function modelRequests(
  { ledger, cursors, clock }: ModelRequestsDependencies,
  { accountId, workspace, uid }: { accountId: string; workspace: string; uid: string },
  query: ModelRequestsQuery,
) {
  const window = windowOf(query, clock.now());
  const bound = ["modelRequests", workspace, uid, query.startTime, query.endTime];
  const after = query.cursor ? placeOf(cursors.decode(query.cursor, bound, clock.now())) : null;
  const filter = { workspace, resourceType: "model", resourceUuid: uid };
  const found = await ledger.events(accountId, window, {
    ...{ after, limit: query.limit + 1, newestFirst: true },
    filter: { ...filter, dimension: "model_requests_count" satisfies ModelCount },
  });
  const page = found.slice(0, query.limit);
  const [first, last] = [page[0], page.at(-1)];
  const hasMore = found.length > query.limit && last !== undefined;
  const parts =
    first === undefined || last === undefined
      ? []
      : await ledger.eventsWithKeys(
          accountId,
          { startMs: last.event.startMs, endMs: first.event.startMs + 1 },
          { filter, keys: page.map(({ event }) => event.key), limit: page.length * MODEL_DIMENSIONS.length },
        );
  const amounts = new Map(parts.map(({ key, series, quantity }) => [`${key} ${series.dimension}`, BigInt(quantity)]));
  return {
    data: page.map(({ event: { key, startMs, series } }) => {
      const amount = (name: ModelCount): number => usageOf(name, amounts.get(`${key} ${name}`) ?? 0n);
      return {
        id: key.slice(COUNT_KEY.length),
        time: toIso(startMs),
        key: series.subject === undefined ? null : subjectFromText(series.subject),
        inputTokens: amount("model_input_tokens_count"),
        outputTokens: amount("model_output_tokens_count"),
        cachedInputTokens: amount("model_cached_tokens_count"),
        cost: amount("model_provider_cost_usd"),
        priced: amount("model_unpriced_requests_count") === 0,
        estimated: amount("model_estimated_requests_count") > 0,
        cached: amount("model_cache_hits_count") > 0,
        similar: amount("model_similar_hits_count") > 0,
      };
    }),
    meta: { hasMore, nextCursor: hasMore ? cursors.encode([...last.place], bound, clock.now()) : "" },
  };
}

function windowOf({ startTime, endTime }: ModelRequestsQuery, nowMs: number): { startMs: number; endMs: number } {
  // The end is outside of the window, and a request of this millisecond is inside of it.
  const until = endTime ?? toIso(nowMs + 1);
  const endMs = Date.parse(until);
  return parseWindow(startTime ?? toIso(Number.isNaN(endMs) ? 0 : Math.max(0, endMs - WINDOW_DEFAULT_MS)), until);
}
