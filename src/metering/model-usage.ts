/** Model usage of a workspace, by model and by key: one ledger query, one row per group. */
import type { CursorCodec } from "../contract/cursor.ts";
import { PlatformError } from "../contract/errors.ts";
import { type Clock, DAY_MS, toIso } from "../lib/time/clock.ts";
import type { UsageColumn, UsageGroup, UsageKey, UsageLedger } from "../store/usage/port.ts";
import { DIMENSION_NAMES, usageOf } from "./dimensions.ts";
import { type ModelCount, subjectFromText } from "./model-tokens.ts";
import { type PriceBook, rateOf } from "./price-book.ts";
import { coverWindow, invalidParameter, parseWindow } from "./window.ts";

/** Length of the window when the query gives none. */
const WINDOW_DEFAULT_MS = 30 * DAY_MS;
/** Most rows (groups x counts) read at a time: some thousand keys at some models. */
const ROWS_MAX = 20_000;

const GROUP_COLUMNS = {
  model: "resourceName",
  key: "subject",
  workspace: "workspace",
} as const satisfies Record<string, UsageColumn>;

type ModelGroup = keyof typeof GROUP_COLUMNS;
const MODEL_GROUPS = Object.keys(GROUP_COLUMNS) as ModelGroup[];

export interface ModelUsageQuery {
  startTime?: string | undefined;
  endTime?: string | undefined;
  groupBy: string;
  model?: string | undefined;
  limit: number;
  cursor?: string | undefined;
}

export interface ModelAmounts {
  requests: number;
  unpricedRequests: number;
  estimatedRequests: number;
  cacheHits: number;
  similarHits: number;
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens: number;
  /** USD. */
  cost: number;
}

const AMOUNTS: Record<keyof ModelAmounts, ModelCount> = {
  requests: "model_requests_count",
  unpricedRequests: "model_unpriced_requests_count",
  estimatedRequests: "model_estimated_requests_count",
  cacheHits: "model_cache_hits_count",
  similarHits: "model_similar_hits_count",
  inputTokens: "model_input_tokens_count",
  outputTokens: "model_output_tokens_count",
  cachedInputTokens: "model_cached_tokens_count",
  cost: "model_provider_cost_usd",
};

export interface ModelUsageEntry extends ModelAmounts {
  workspace?: string;
  model?: string;
  key?: { type: string; id: string } | null;
}

export interface ModelUsageDependencies {
  ledger: Pick<UsageLedger, "ask">;
  book: PriceBook;
  cursors: CursorCodec;
  clock: Clock;
}

export async function modelUsage(
  { ledger, book, cursors, clock }: ModelUsageDependencies,
  { accountId, name: workspace }: { accountId: string; name: string },
  query: ModelUsageQuery,
) {
  const groupBy = parseGroupBy(query.groupBy);
  const bound = ["modelUsage", workspace, query.startTime, query.endTime, groupBy, query.model];
  const place = query.cursor ? placeOf(cursors.decode(query.cursor, bound, clock.now())) : null;
  const asOfMs = place?.asOfMs ?? clock.now();
  const { startTime, endTime, ...window } = windowOf(query, asOfMs);
  const { startMs } = window;
  // All pages end at the moment of the first page: usage added meanwhile would change the order of groups.
  const endMs = place ? Math.max(startMs + 1, Math.min(window.endMs, asOfMs)) : window.endMs;
  const columns = groupBy.map((name) => GROUP_COLUMNS[name]);
  const filter: UsageKey = { workspace, resourceType: "model" };
  if (query.model !== undefined) filter.resourceName = query.model;
  const { groups, totals } = await ledger.ask({
    accountId,
    workspaces: [workspace],
    filter,
    selective: true,
    columns: [...columns, "dimension"],
    startMs,
    endMs,
    totalParts: coverWindow(startMs, endMs, "month"),
    bucketParts: [],
    bucketHours: 1,
    bucketShiftHours: 0,
    limit: ROWS_MAX + 1,
    after: null,
    rateOf: rateOf(book),
    dimensions: DIMENSION_NAMES,
  });
  if (groups.length > ROWS_MAX) throw invalidParameter("groupBy", "gives too many groups; ask for one model");
  const entries = entriesOf(groups, columns);
  const from = place?.from ?? 0;
  const to = from + query.limit;
  const hasMore = to < entries.length;
  return {
    startTime,
    endTime,
    summary: amountsOf(new Map(totals.map(({ dimension, quantity }) => [dimension, quantity]))),
    data: entries.slice(from, to),
    meta: { hasMore, nextCursor: hasMore ? cursors.encode([to, asOfMs], bound, clock.now()) : "" },
  };
}

/** Parses `groupBy` into canonical order; the order in the query does not matter. */
function parseGroupBy(text: string): ModelGroup[] {
  const names = text.split(",", MODEL_GROUPS.length + 1);
  if (names.some((name) => !Object.hasOwn(GROUP_COLUMNS, name)) || new Set(names).size !== names.length) {
    throw invalidParameter("groupBy", `takes each of ${MODEL_GROUPS.join(", ")} once, separated by commas`);
  }
  return MODEL_GROUPS.filter((name) => names.includes(name));
}

function windowOf({ startTime, endTime }: ModelUsageQuery, nowMs: number) {
  const until = endTime ?? toIso(nowMs);
  if (startTime !== undefined) return parseWindow(startTime, until);
  const endMs = Date.parse(until);
  return parseWindow(toIso(Number.isNaN(endMs) ? 0 : Math.max(0, endMs - WINDOW_DEFAULT_MS)), until);
}

/** Merges groups that differ only in the counted dimension into one entry; highest cost first, then by key. */
function entriesOf(groups: readonly UsageGroup[], columns: readonly UsageColumn[]): ModelUsageEntry[] {
  const found = new Map<string, { key: UsageKey; amounts: Map<string, bigint> }>();
  for (const { key, quantity } of groups) {
    const id = JSON.stringify(columns.map((column) => key[column]));
    const entry = found.get(id) ?? { key, amounts: new Map() };
    entry.amounts.set(key.dimension ?? "", quantity);
    found.set(id, entry);
  }
  return [...found]
    .map(([id, { key, amounts }]) => ({ id, entry: { ...fieldsOf(key), ...amountsOf(amounts) } }))
    .sort((a, b) => b.entry.cost - a.entry.cost || b.entry.requests - a.entry.requests || (a.id < b.id ? -1 : 1))
    .map(({ entry }) => entry);
}

const fieldsOf = ({
  workspace,
  resourceName,
  subject,
}: UsageKey): Pick<ModelUsageEntry, "workspace" | "model" | "key"> => ({
  ...(workspace === undefined ? {} : { workspace }),
  ...(resourceName === undefined ? {} : { model: resourceName }),
  ...(subject === undefined ? {} : { key: subjectFromText(subject) }),
});

const amountsOf = (quantities: ReadonlyMap<string, bigint>): ModelAmounts => {
  const amount = (name: keyof ModelAmounts): number => usageOf(AMOUNTS[name], quantities.get(AMOUNTS[name]) ?? 0n);
  return {
    requests: amount("requests"),
    unpricedRequests: amount("unpricedRequests"),
    estimatedRequests: amount("estimatedRequests"),
    cacheHits: amount("cacheHits"),
    similarHits: amount("similarHits"),
    inputTokens: amount("inputTokens"),
    outputTokens: amount("outputTokens"),
    cachedInputTokens: amount("cachedInputTokens"),
    cost: amount("cost"),
  };
};

function placeOf([from, asOfMs]: unknown[]): { from: number; asOfMs: number } {
  if (typeof from === "number" && typeof asOfMs === "number") return { from, asOfMs };
  throw new PlatformError("invalid_cursor", "cursor does not belong to this endpoint. Start again without one.");
}
