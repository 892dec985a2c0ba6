/**
 * The metrics endpoint once more, as plain loops over raw events: no rollups, no levels, no parts, no pages. Slow and
 * obvious, and written from the interface's own words, so that the real one can be held against it.
 */
import { hourMs, hourOf } from "../../src/lib/time/utc-calendar.ts";
import { DIMENSIONS, type DimensionName, UNIT_BASE } from "../../src/metering/dimensions.ts";
import type { PriceBook } from "../../src/metering/price-book.ts";
import type { UsageEvent, UsageSeries } from "../../src/store/usage/port.ts";

export interface ModelQuery {
  accountId: string;
  startMs: number;
  endMs: number;
  resolution: "hourly" | "daily" | "weekly" | "monthly";
  groupBy: string[];
  filter: Partial<Record<keyof UsageSeries, string>>;
}

export interface ModelEntry {
  fields: Record<string, string>;
  cost: bigint;
  usage: number;
  buckets: { timestamp: string; cost: bigint; usage: number }[];
}

export interface ModelAnswer {
  totalCost: bigint;
  totalUsage: number;
  entries: ModelEntry[];
}

/** What is still running is priced on its own until it is settled. */
export type ModelEvent = UsageEvent & { running?: number };

const FILLED: Record<string, string[]> = {
  workspace: ["workspace", "resource_name", "resource_uuid"],
  resourceType: ["resource_type", "resource_name", "resource_uuid", "billing_dimension"],
  resourceName: ["resource_name", "resource_uuid"],
  resourceUuid: ["resource_uuid"],
  billingDimension: ["billing_dimension"],
};

/** Every event inside one hour, as the ledger keeps them: the meter's rule for splitting is checked on its own. */
export function askModel(events: readonly ModelEvent[], query: ModelQuery, book: PriceBook): ModelAnswer {
  const hours = new Map<string, { series: UsageSeries; hour: number; quantity: bigint }>();
  for (const event of events) {
    if (event.series.accountId !== query.accountId) continue;
    if (Object.entries(query.filter).some(([name, value]) => event.series[name as keyof UsageSeries] !== value))
      continue;
    const inside = usedInside(event, query);
    if (inside === null) continue;
    const hour = hourOf(event.startMs);
    const id = JSON.stringify([event.series, hour, event.running]);
    const sum = hours.get(id) ?? { series: event.series, hour, quantity: 0n };
    sum.quantity += inside;
    hours.set(id, sum);
  }
  const entries = new Map<string, ModelEntry>();
  if (query.groupBy.length === 0) entries.set("[]", emptyEntry({}, query));
  for (const { series, hour, quantity } of hours.values()) {
    const fields = fieldsOf(series, query.groupBy);
    const id = JSON.stringify(Object.entries(fields));
    const entry = entries.get(id) ?? emptyEntry(fields, query);
    entries.set(id, entry);
    addHour(entry, series.dimension as DimensionName, hour, quantity, query, book);
  }
  const sorted = [...entries.values()].sort(byCostThenKey);
  return {
    totalCost: sorted.reduce((sum, { cost }) => sum + cost, 0n),
    totalUsage: sorted.reduce((sum, { usage }) => sum + usage, 0),
    entries: sorted,
  };
}

function usedInside({ startMs, endMs, quantity }: UsageEvent, query: ModelQuery): bigint | null {
  if (startMs === endMs) return startMs >= query.startMs && startMs < query.endMs ? BigInt(quantity) : null;
  if (endMs <= query.startMs || startMs >= query.endMs) return null;
  const before = (ms: number) =>
    (BigInt(quantity) * BigInt(Math.max(0, Math.min(ms, endMs) - startMs))) / BigInt(endMs - startMs);
  return before(query.endMs) - before(query.startMs);
}

function addHour(
  entry: ModelEntry,
  dimension: DimensionName,
  hour: number,
  quantity: bigint,
  query: ModelQuery,
  book: PriceBook,
): void {
  const { numerator, denominator } = book.rate(dimension, hour);
  const cost = (quantity * numerator + denominator / 2n) / denominator;
  const used = Number(quantity) / Number(UNIT_BASE[DIMENSIONS[dimension].unit]);
  const timestamp = iso(bucketStartMs(hourMs(hour), query.resolution));
  const bucket = entry.buckets.find((candidate) => candidate.timestamp === timestamp);
  if (!bucket) throw new Error(`no bucket ${timestamp}`);
  bucket.cost += cost;
  bucket.usage += used;
  entry.cost += cost;
  entry.usage += used;
}

function emptyEntry(fields: Record<string, string>, query: ModelQuery): ModelEntry {
  const buckets: ModelEntry["buckets"] = [];
  // Hour by hour through the window: slow, and it cannot miss a bucket.
  for (let ms = hourMs(hourOf(query.startMs)); ms < query.endMs; ms += hourMs(1)) {
    const timestamp = iso(bucketStartMs(ms, query.resolution));
    if (buckets.at(-1)?.timestamp !== timestamp) buckets.push({ timestamp, cost: 0n, usage: 0 });
  }
  return { fields, cost: 0n, usage: 0, buckets };
}

function bucketStartMs(ms: number, resolution: ModelQuery["resolution"]): number {
  const date = new Date(ms);
  if (resolution === "monthly") date.setUTCDate(1);
  if (resolution === "weekly") while (date.getUTCDay() !== 1) date.setUTCDate(date.getUTCDate() - 1);
  if (resolution === "hourly") date.setUTCMinutes(0, 0, 0);
  else date.setUTCHours(0, 0, 0, 0);
  return date.getTime();
}

function fieldsOf(series: UsageSeries, groupBy: readonly string[]): Record<string, string> {
  const all: Record<string, string> = { ...series, billingDimension: series.dimension };
  const filled = Object.entries(FILLED).filter(([, by]) => by.some((name) => groupBy.includes(name)));
  return Object.fromEntries(filled.map(([field]) => [field, all[field] ?? ""]));
}

function byCostThenKey(a: ModelEntry, b: ModelEntry): number {
  if (a.cost !== b.cost) return a.cost > b.cost ? -1 : 1;
  for (const field of Object.keys(FILLED)) {
    const order = Buffer.compare(Buffer.from(a.fields[field] ?? ""), Buffer.from(b.fields[field] ?? ""));
    if (order !== 0) return order;
  }
  return 0;
}

const iso = (ms: number): string => new Date(ms).toISOString().replace(".000Z", "Z");
