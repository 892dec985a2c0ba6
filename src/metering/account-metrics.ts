/**
 * The answer of the metrics endpoint: a request becomes one ledger query, and its answer becomes entries with one item
 * per bucket. Nothing is rounded here: costs arrive as whole 10^-10 USD.
 */
import type { CursorCodec } from "../contract/cursor.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Clock } from "../lib/time/clock.ts";
import { hourToRfc3339 } from "../lib/time/utc-calendar.ts";
import type {
  UsageAnswer,
  UsageColumn,
  UsageGroup,
  UsageKey,
  UsageLedger,
  UsageQuestion,
  UsageView,
} from "../store/usage/port.ts";
import { asksForNames } from "../store/usage/rollup.ts";
import { DIMENSION_NAMES, isDimension, usageOf, usageOfAll } from "./dimensions.ts";
import { FLUSH_MAX_MS } from "./meter.ts";
import { columnsOf, type MetricsQuery } from "./metrics-query.ts";
import { costToUsd, type PriceBook, rateOf } from "./price-book.ts";
import { bucketHoursOf, bucketOf, coverWindow, type MetricsWindow, RESOLUTIONS } from "./window.ts";

export interface MetricsItem {
  timestamp: string;
  cost: number;
  usage?: number;
}

export interface MetricsEntry {
  workspace?: string;
  resourceType?: string;
  resourceName?: string;
  resourceUuid?: string;
  billingDimension?: string;
  summary: { cost: number; usage?: number };
  timeseries: MetricsItem[];
}

export interface AccountMetrics {
  startTime: string;
  endTime: string;
  resolution: string;
  summary: { totalCost: number; totalUsage?: number };
  data: MetricsEntry[];
  meta: { hasMore: boolean; nextCursor: string };
}

export interface MetricsDependencies {
  ledger: Pick<UsageLedger, "ask" | "vouchedMs">;
  book: PriceBook;
  cursors: CursorCodec;
  clock: Clock;
}

/** A server that has not reported for this long is gone, and its open spans no longer grow. */
const GONE_AFTER_MS = 3 * FLUSH_MAX_MS;

/** The content of a cursor: the last group of the page, and the end of the window for all pages. */
interface Place {
  asOfMs: number;
  after: { cost: bigint; key: string[] };
}

export async function accountMetrics(
  { ledger, book, cursors, clock }: MetricsDependencies,
  view: UsageView,
  query: MetricsQuery,
): Promise<AccountMetrics> {
  const nowMs = clock.now();
  const bound = cursorBinding(view.accountId, query);
  const place = query.cursor === null ? null : placeOf(cursors.decode(query.cursor, bound, nowMs));
  const { window, limit } = query;
  const columns = columnsOf(query.groupBy);
  const asOfMs = place?.asOfMs ?? (await settledMs(ledger, window, nowMs));
  const ask = (endMs: number): Promise<UsageAnswer> =>
    ledger.ask({
      ...questionOf(view, query, columns, endMs, book),
      limit: limit + 1,
      after: place?.after ?? null,
    });
  let answer = await ask(place ? asOfMs : window.endMs);
  // With several pages, all of them show the same moment: growing costs would otherwise move groups past the cursor.
  if (!place && answer.groups.length > limit && asOfMs < window.endMs) answer = await ask(asOfMs);
  const page = answer.groups.slice(0, limit);
  const last = page.at(-1);
  const hasMore = answer.groups.length > limit && last !== undefined;
  return {
    startTime: query.window.startTime,
    endTime: query.window.endTime,
    resolution: query.resolution,
    summary: summaryOf(answer, query),
    data: entriesOf(page, answer, query, columns),
    meta: {
      hasMore,
      nextCursor: hasMore ? cursors.encode(positionOf(last, columns, asOfMs), bound, nowMs) : "",
    },
  };
}

/**
 * The end of the window, or the latest moment that every server has reported, after which no usage before it is added.
 */
async function settledMs(
  ledger: Pick<UsageLedger, "vouchedMs">,
  { startMs, endMs }: MetricsWindow,
  nowMs: number,
): Promise<number> {
  const vouchedMs = (await ledger.vouchedMs(nowMs - GONE_AFTER_MS)) ?? nowMs;
  return Math.max(startMs + 1, Math.min(endMs, vouchedMs > startMs ? vouchedMs : nowMs));
}

/** The resource types that have at least one event in the window, in alphabetical order. */
export async function resourceTypesOf(
  { ledger, book }: { ledger: Pick<UsageLedger, "resourceTypes">; book: PriceBook },
  view: UsageView,
  { startMs, endMs }: MetricsWindow,
): Promise<string[]> {
  const question = { ...view, startMs, endMs, dimensions: DIMENSION_NAMES, rateOf: rateOf(book) };
  const types = await ledger.resourceTypes(question, coverWindow(startMs, endMs, "month"));
  return types.sort();
}

function questionOf(
  view: UsageView,
  { window: { startMs }, resolution, filter }: MetricsQuery,
  columns: readonly UsageColumn[],
  endMs: number,
  book: PriceBook,
): Omit<UsageQuestion, "limit" | "after"> {
  const { grain, bucketHours, shiftHours } = RESOLUTIONS[resolution];
  // Rollups by week exist only without resource names.
  const coarsest = grain === "week" && asksForNames({ columns, filter }) ? "day" : grain;
  return {
    ...view,
    filter,
    columns,
    startMs,
    endMs,
    totalParts: coverWindow(startMs, endMs, "month"),
    bucketParts: coverWindow(startMs, endMs, coarsest),
    bucketHours,
    bucketShiftHours: shiftHours,
    rateOf: rateOf(book),
    dimensions: DIMENSION_NAMES,
  };
}

function summaryOf({ totals }: UsageAnswer, query: MetricsQuery): AccountMetrics["summary"] {
  const totalCost = costToUsd(totals.reduce((sum, { cost }) => sum + cost, 0n));
  if (!countsUsage(query)) return { totalCost };
  return { totalCost, totalUsage: usageOfAll(totals) };
}

function entriesOf(
  page: UsageGroup[],
  { cells }: UsageAnswer,
  query: MetricsQuery,
  columns: readonly UsageColumn[],
): MetricsEntry[] {
  const buckets = bucketHoursOf(query.window, query.resolution);
  const timestamps = buckets.map(hourToRfc3339);
  const bucketIndex = new Map(buckets.map((hour, index) => [hour, index]));
  const sums = page.map(() => buckets.map(() => ({ cost: 0n, quantity: 0n })));
  for (const { group, hour, cost, quantity } of cells) {
    const sum = sums[group]?.[bucketIndex.get(bucketOf(hour, query.resolution)) ?? -1];
    if (!sum) continue; // the group after the page, which only shows that there is a next page
    sum.cost += cost;
    sum.quantity += quantity;
  }
  // Without groupBy there is always one entry, even without usage.
  const groups = page.length === 0 && columns.length === 0 ? [{ key: {}, cost: 0n, quantity: 0n }] : page;
  const withUsage = countsUsage(query);
  return groups.map(({ key, cost, quantity }, group) => {
    const shown = (sum: { cost: bigint; quantity: bigint }) => ({
      cost: costToUsd(sum.cost),
      ...(withUsage ? { usage: usage(key.dimension, sum.quantity) } : {}),
    });
    return {
      ...fieldsOf(key),
      summary: shown({ cost, quantity }),
      timeseries: timestamps.map((timestamp, index) => ({ timestamp, ...shown(sums[group]?.[index] ?? NOTHING) })),
    };
  });
}

const NOTHING = { cost: 0n, quantity: 0n };

function fieldsOf({ dimension, ...fields }: UsageKey): Omit<MetricsEntry, "summary" | "timeseries"> {
  return dimension === undefined ? fields : { ...fields, billingDimension: dimension };
}

/** Amounts of different units cannot be added; usage is shown only when each entry has one dimension. */
const countsUsage = ({ groupBy }: MetricsQuery): boolean => groupBy.includes("billing_dimension");

const usage = (dimension: string | undefined, quantity: bigint): number =>
  dimension !== undefined && isDimension(dimension) ? usageOf(dimension, quantity) : 0;

const keyTexts = (key: UsageKey, columns: readonly UsageColumn[]): string[] =>
  columns.map((column) => key[column] ?? "");

/** A cursor is bound to all parameters except the page size. */
const cursorBinding = (accountId: string, { window, resolution, groupBy, filter }: MetricsQuery): unknown => [
  "accountMetrics",
  accountId,
  window.startMs,
  window.endMs,
  resolution,
  groupBy,
  filter,
];

const positionOf = (group: UsageGroup, columns: readonly UsageColumn[], asOfMs: number): unknown[] => [
  asOfMs,
  group.cost.toString(),
  ...keyTexts(group.key, columns),
];

function placeOf([asOfMs, cost, ...key]: unknown[]): Place {
  if (typeof asOfMs !== "number" || typeof cost !== "string") {
    throw new PlatformError("invalid_cursor", "cursor does not belong to this endpoint. Start again without one.");
  }
  return { asOfMs, after: { cost: BigInt(cost), key: key.map(String) } };
}
