/**
 * Writes to the ledger. Events are appended and all sums over them are updated in the same transaction, so a reader
 * never sees one without the other. An event that already exists adds nothing.
 */
import { sql } from "kysely";
import { hourOf } from "../../lib/time/utc-calendar.ts";
import type { Database, Dialect, Queries } from "../database/database.ts";
import { jsonRows } from "../database/json-rows.ts";
import type { RateOf, UsageChange, UsageEvent, UsageSeries } from "./port.ts";
import { costOf, HOUR_LEVEL, isWithinHour, ROLLUP_LEVELS } from "./rollup.ts";
import { type createUsageSeries, type SeriesId, seriesKey } from "./series.ts";

interface HourDelta extends SeriesId {
  dimension: string;
  hour: number;
  quantity: bigint;
  cost: bigint;
}

type RollupRow = [account: number, level: number, bucket: number, series: number, quantity: bigint, cost: bigint];

const ROLLUP_COLUMNS = {
  account: "bigint",
  level: "bigint",
  bucket: "bigint",
  series_id: "bigint",
  quantity: "bigint",
  cost: "bigint",
} as const;

const EVENT_COLUMNS = {
  start_ms: "bigint",
  series_id: "bigint",
  event_key: "text",
  end_ms: "bigint",
  quantity: "bigint",
} as const;

const SPAN_COLUMNS = {
  series_id: "bigint",
  node: "text",
  start_ms: "bigint",
  rate: "bigint",
  span_key: "text",
  price_numerator: "bigint",
  price_denominator: "bigint",
} as const;

export function createUsageRecorder(database: Database, allSeries: ReturnType<typeof createUsageSeries>) {
  return async (change: UsageChange, rateOf: RateOf): Promise<void> => {
    const { events = [] } = change;
    if (!events.every(isWithinHour)) throw new Error("an event must not cross a full hour");
    const found = await database.write(async ({ queries }) => {
      await lockLedger(database, queries, "shared");
      const ids = await allSeries.resolve(queries, seriesIn(change));
      const place = { queries, dialect: database.dialect, ids };
      if (events.length > 0) await appendEvents(place, events, rateOf);
      await closeSpans(place, change.close ?? []);
      await openSpans(place, change.open ?? []);
      if (change.covered) await vouch(place, change.covered);
      return ids;
    });
    allSeries.remember(found);
  };
}

interface Place {
  queries: Queries;
  dialect: Dialect;
  ids: ReadonlyMap<string, SeriesId>;
}

async function appendEvents(place: Place, events: readonly UsageEvent[], rateOf: RateOf): Promise<void> {
  const byId = new Map<number, SeriesId & { dimension: string }>();
  const rows = events.map(({ series, startMs, key, endMs, quantity }) => {
    const id = idOf(place, series);
    byId.set(id.id, { ...id, dimension: series.dimension });
    return [startMs, id.id, key, endMs, quantity] as const;
  });
  const { rows: added } = await sql<{ start_ms: number; series_id: number; quantity: number }>`
    INSERT INTO usage_events (start_ms, series_id, event_key, end_ms, quantity)
    SELECT start_ms, series_id, event_key, end_ms, quantity FROM ${jsonRows(place.dialect, EVENT_COLUMNS, rows)} AS given WHERE true
    ON CONFLICT DO NOTHING RETURNING start_ms, series_id, quantity`.execute(place.queries);
  const deltas = new Map<string, HourDelta>();
  for (const { start_ms, series_id, quantity } of added) {
    const hour = hourOf(start_ms);
    const series = byId.get(series_id);
    if (!series) throw new Error("the ledger returned an event that was not given");
    const delta = deltas.get(`${series_id} ${hour}`) ?? { ...series, hour, quantity: 0n, cost: 0n };
    delta.quantity += BigInt(quantity);
    deltas.set(`${series_id} ${hour}`, delta);
  }
  if (deltas.size > 0) await rollUp(place, deltas, rateOf);
}

/**
 * Updates the hours first: adds the cost of the new quantity, and corrects it where the price of the whole hour rounds
 * differently. The resulting deltas are then added to every level above.
 */
async function rollUp(
  { queries, dialect }: Place,
  deltas: ReadonlyMap<string, HourDelta>,
  rateOf: RateOf,
): Promise<void> {
  const hours = [...deltas.values()].map((delta): RollupRow => {
    delta.cost = costOf(delta.quantity, rateOf(delta.dimension, delta.hour));
    return [delta.account, HOUR_LEVEL.id, delta.hour, delta.id, delta.quantity, delta.cost];
  });
  const { rows: grown } = await sql<{ series_id: number; bucket: number; quantity: string; cost: string }>`
    ${upsert(dialect, hours)} RETURNING series_id, bucket, CAST(quantity AS TEXT) AS quantity, CAST(cost AS TEXT) AS cost`.execute(
    queries,
  );
  const corrections: RollupRow[] = [];
  for (const { series_id, bucket, quantity, cost } of grown) {
    const delta = deltas.get(`${series_id} ${bucket}`);
    if (!delta) continue;
    const correction = costOf(BigInt(quantity), rateOf(delta.dimension, bucket)) - BigInt(cost);
    if (correction === 0n) continue;
    delta.cost += correction;
    corrections.push([delta.account, HOUR_LEVEL.id, bucket, series_id, 0n, correction]);
  }
  await upsert(dialect, [...corrections, ...sumsAbove(deltas.values())]).execute(queries);
}

/** The same deltas on every level above the hour. */
function sumsAbove(deltas: Iterable<HourDelta>): RollupRow[] {
  const sums = new Map<string, RollupRow>();
  for (const { account, id, unnamedId, hour, quantity, cost } of deltas) {
    for (const level of ROLLUP_LEVELS) {
      if (level === HOUR_LEVEL) continue;
      const [bucket, series] = [level.bucket(hour), level.named ? id : unnamedId];
      const place = `${level.id} ${bucket} ${series}`;
      const sum: RollupRow = sums.get(place) ?? [account, level.id, bucket, series, 0n, 0n];
      sum[4] += quantity;
      sum[5] += cost;
      sums.set(place, sum);
    }
  }
  return [...sums.values()];
}

/** Rows are written in key order, so that two writers do not deadlock. */
function upsert(dialect: Dialect, rows: RollupRow[]) {
  rows.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2] || a[3] - b[3]);
  return sql`INSERT INTO usage_rollups (account, level, bucket, series_id, quantity, cost)
    SELECT account, level, bucket, series_id, quantity, cost FROM ${jsonRows(dialect, ROLLUP_COLUMNS, rows)} AS given WHERE true
    ON CONFLICT (account, level, bucket, series_id) DO UPDATE
    SET quantity = usage_rollups.quantity + excluded.quantity, cost = usage_rollups.cost + excluded.cost`;
}

async function closeSpans(place: Place, close: NonNullable<UsageChange["close"]>): Promise<void> {
  if (close.length === 0) return;
  const { queries, dialect } = place;
  const rows = close.map(({ node, series, untilMs }) => [idOf(place, series).id, node, untilMs]);
  const closed = jsonRows(dialect, { series_id: "bigint", node: "text", until_ms: "bigint" }, rows);
  await sql`DELETE FROM usage_spans WHERE (series_id, node) IN (SELECT series_id, node FROM ${closed} AS given)`.execute(
    queries,
  );
  await sql`INSERT INTO usage_metered (series_id, node, until_ms) SELECT series_id, node, until_ms FROM ${closed} AS given
    WHERE true ON CONFLICT (series_id, node) DO UPDATE SET until_ms = excluded.until_ms`.execute(queries);
}

async function openSpans(place: Place, open: NonNullable<UsageChange["open"]>): Promise<void> {
  if (open.length === 0) return;
  const rows = open.map(({ node, span: { series, startMs, ratePerMs, key, price } }) => {
    return [idOf(place, series).id, node, startMs, ratePerMs, key, price.numerator, price.denominator] as const;
  });
  await sql`INSERT INTO usage_spans (series_id, node, start_ms, rate, span_key, price_numerator, price_denominator)
    SELECT series_id, node, start_ms, rate, span_key, price_numerator, price_denominator
    FROM ${jsonRows(place.dialect, SPAN_COLUMNS, rows)} AS given WHERE true
    ON CONFLICT (series_id, node) DO UPDATE SET start_ms = excluded.start_ms, rate = excluded.rate,
      span_key = excluded.span_key, price_numerator = excluded.price_numerator,
      price_denominator = excluded.price_denominator`.execute(place.queries);
}

async function vouch({ queries }: Place, { node, untilMs, era }: NonNullable<UsageChange["covered"]>): Promise<void> {
  await sql`INSERT INTO usage_meters (node, covered_until, era) VALUES (${node}, ${untilMs}, ${era})
    ON CONFLICT (node) DO UPDATE SET covered_until = excluded.covered_until, era = excluded.era`.execute(queries);
}

/** Locks the ledger: recording shares the lock, rebuilding holds it alone. SQLite has one writer anyway. */
export async function lockLedger(database: Database, queries: Queries, mode: "shared" | "alone"): Promise<void> {
  if (database.dialect === "sqlite") return;
  const lock = mode === "shared" ? sql`pg_advisory_xact_lock_shared` : sql`pg_advisory_xact_lock`;
  await sql`SELECT ${lock}(hashtextextended('berth:usage', 0))`.execute(queries);
}

const seriesIn = ({ events = [], open = [], close = [] }: UsageChange) => [
  ...events.map(({ series }) => series),
  ...open.map(({ span }) => span.series),
  ...close.map(({ series }) => series),
];

function idOf({ ids }: Place, series: UsageSeries): SeriesId {
  const id = ids.get(seriesKey(series));
  if (!id) throw new Error("a series was not resolved");
  return id;
}
