/**
 * A ledger of a chosen size, made where it lies: every line (one resource, one dimension) runs for a while at an even
 * rate, so its events and its sums on every level follow from where it starts and ends.
 */
import { sql } from "kysely";
import { HOUR_MS } from "../../src/lib/time/clock.ts";
import { DAY_HOURS, dayStart, hourOf } from "../../src/lib/time/utc-calendar.ts";
import { createPriceBook, rateOf } from "../../src/metering/price-book.ts";
import type { Store } from "../../src/store/store.ts";
import type { UsageEvent } from "../../src/store/usage/port.ts";
import { costOf, ROLLUP_LEVELS } from "../../src/store/usage/rollup.ts";

export const ACCOUNT = "bench";
/** History ends here; more of it reaches further back. */
export const END = "2026-01-01T00:00:00Z";
export const END_HOUR = hourOf(Date.parse(END));
const HISTORY_HOURS = 730 * DAY_HOURS;
const WORKSPACES = 20;
/** Written in one transaction: a week keeps a transaction in the tens of megabytes. */
const DAYS_PER_WRITE = 7;

const book = createPriceBook();

/** Where the newest `share` of history begins. */
export const historyStart = (share: number): number => dayStart(END_HOUR - Math.round(HISTORY_HOURS * share));

export interface Size {
  events: number;
  resources: number;
  /** Events of a line in an hour; they are one row in the sums. */
  perHour: number;
  /** Without them only the sums are there, as after the events have been removed. */
  withEvents: boolean;
}

/** Resources live for some days each, one after the other; `from` and `to` are shares of history, the newest first. */
export async function fillLedger(store: Store, size: Size, from: number, to: number): Promise<void> {
  const startHour = historyStart(to);
  const endHour = historyStart(from);
  const first = Math.round(size.resources * from);
  const last = Math.round(size.resources * to);
  const lifeHours = Math.round(size.events / size.resources / size.perHour / 2);
  await createLines(store, { first, last, startHour, endHour, lifeHours });
  for (let hour = startHour; hour < endHour; hour += DAYS_PER_WRITE * DAY_HOURS) {
    const until = Math.min(endHour, hour + DAYS_PER_WRITE * DAY_HOURS);
    await store.write(async ({ queries }) => {
      if (size.withEvents) await insertEvents(queries, hour, until, lifeHours);
      await insertRollups(queries, store.database.dialect, hour, until, lifeHours);
    });
  }
  await store.write(async ({ queries }) => {
    await sql`DROP TABLE bench_lines`.execute(queries);
    if (size.withEvents) return;
    await sql`INSERT INTO usage_retention (id, events_since) VALUES (1, ${END_HOUR}) ON CONFLICT DO NOTHING`.execute(
      queries,
    );
  });
  if (store.database.dialect === "postgres") await sql`ANALYZE`.execute(store.database.read);
}

interface Stretch {
  first: number;
  last: number;
  startHour: number;
  endHour: number;
  lifeHours: number;
}

/** One row for every line: when it runs, and what an hour of it is and costs. */
async function createLines(store: Store, stretch: Stretch): Promise<void> {
  const { first, last, startHour, endHour, lifeHours } = stretch;
  const span = Math.max(1, endHour - startHour - lifeHours);
  for (let start = first; start < last; start += 500) {
    const events: UsageEvent[] = [];
    for (let n = start; n < Math.min(last, start + 500); n += 1)
      events.push(hourEvent(2 * n, endHour), hourEvent(2 * n + 1, endHour));
    // Through the front door, so that the series get their numbers; nothing is used, so nothing is summed.
    await store.usage.record(
      { open: events.map(({ series }) => ({ node: "fill", span: idleSpan(series) })) },
      rateOf(book),
    );
  }
  await store.write(async ({ queries }) => {
    await sql`DELETE FROM usage_spans WHERE node = 'fill'`.execute(queries);
    await sql`CREATE TABLE bench_lines (series INTEGER, unnamed INTEGER, account INTEGER, starts INTEGER, ends INTEGER, quantity BIGINT, cost BIGINT)`.execute(
      queries,
    );
    const { rows } = await sql<{ id: number; unnamed_id: number; account: number; name: string; dimension: string }>`
      SELECT s.id, s.unnamed_id, s.account, s.resource_name AS name, s.dimension FROM usage_series s
      JOIN usage_accounts a ON a.id = s.account WHERE a.account_id = ${ACCOUNT} AND s.named = 1`.execute(queries);
    const lines = rows.flatMap(({ id, unnamed_id, account, name, dimension }) => {
      const n = Number(name.slice(2));
      if (n < first || n >= last) return [];
      const starts = startHour + Math.floor(((n - first) / Math.max(1, last - first)) * span);
      const quantity = (1 + (id % 8)) * 512 * HOUR_MS;
      const cost = costOf(BigInt(quantity), rateOf(book)(dimension, starts));
      return [
        `(${id},${unnamed_id},${account},${starts},${Math.min(endHour, starts + lifeHours)},${quantity},${cost})`,
      ];
    });
    for (let index = 0; index < lines.length; index += 1000)
      await sql`INSERT INTO bench_lines VALUES ${sql.raw(lines.slice(index, index + 1000).join(","))}`.execute(queries);
    await sql`CREATE INDEX bench_lines_starts ON bench_lines (starts)`.execute(queries);
  });
}

type Queries = Parameters<Parameters<Store["write"]>[0]>[0]["queries"];

/** Lines that run at some time in [hour, until). */
const active = (hour: number, until: number, lifeHours: number) =>
  sql.raw(`l.starts > ${hour - lifeHours} AND l.starts < ${until}`);

const numbers = (name: string, values: readonly (readonly number[])[], columns: string) =>
  sql.raw(`${name}(${columns}) AS (VALUES ${values.map((row) => `(${row.join(",")})`).join(",")})`);

async function insertEvents(queries: Queries, hour: number, until: number, lifeHours: number): Promise<void> {
  const hours = Array.from({ length: until - hour }, (_, index) => [hour + index]);
  await sql`WITH ${numbers("h", hours, "hour")}
    INSERT INTO usage_events (start_ms, series_id, event_key, end_ms, quantity)
    SELECT CAST(h.hour AS BIGINT) * ${sql.lit(HOUR_MS)}, l.series, 'b', (CAST(h.hour AS BIGINT) + 1) * ${sql.lit(HOUR_MS)}, l.quantity
    FROM bench_lines l CROSS JOIN h WHERE ${active(hour, until, lifeHours)} AND l.starts <= h.hour AND l.ends > h.hour
    ORDER BY 1, 2`.execute(queries);
}

async function insertRollups(
  queries: Queries,
  dialect: Store["database"]["dialect"],
  hour: number,
  until: number,
  lifeHours: number,
): Promise<void> {
  const [least, greatest] = dialect === "sqlite" ? ["MIN", "MAX"] : ["LEAST", "GREATEST"];
  for (const { id, named, bucket, next } of ROLLUP_LEVELS) {
    // A bucket that reaches out of this stretch takes only its part of it, and is added to by the next.
    const buckets: number[][] = [];
    for (let at = bucket(hour); at < until; at = next(at))
      buckets.push([at, Math.max(at, hour), Math.min(next(at), until)]);
    const series = named ? "l.series" : "l.unnamed";
    const hours = sql.raw(`(${least}(l.ends, b.until) - ${greatest}(l.starts, b.since))`);
    await sql`WITH ${numbers("b", buckets, "bucket, since, until")}
      INSERT INTO usage_rollups (account, level, bucket, series_id, quantity, cost)
      SELECT l.account, ${sql.lit(id)}, b.bucket, ${sql.raw(series)}, CAST(SUM(l.quantity * ${hours}) AS BIGINT), CAST(SUM(l.cost * ${hours}) AS BIGINT)
      FROM bench_lines l CROSS JOIN b WHERE ${active(hour, until, lifeHours)} AND l.starts < b.until AND l.ends > b.since
      GROUP BY l.account, b.bucket, ${sql.raw(series)} ORDER BY 3, 4
      ON CONFLICT (account, level, bucket, series_id) DO UPDATE
      SET quantity = usage_rollups.quantity + excluded.quantity, cost = usage_rollups.cost + excluded.cost`.execute(
      queries,
    );
  }
}

const idleSpan = (series: UsageEvent["series"]) => ({
  series,
  startMs: 0,
  ratePerMs: 0,
  key: "fill",
  price: { numerator: 0n, denominator: 1n },
});

const TYPES = [
  ["sandbox", "sandbox_compute_runtime_gbs", "sandbox_image_storage_gbs"],
  ["agent", "agent_compute_runtime_gbs", "agent_image_storage_gbs"],
  ["job", "job_compute_runtime_gbs", "job_image_storage_gbs"],
  ["mcp_server", "mcp_server_compute_runtime_gbs", "mcp_server_image_storage_gbs"],
] as const;

/** An hour of line `n`; each resource has two lines. */
export function hourEvent(n: number, hour: number, prefix = "r"): UsageEvent {
  const resource = Math.floor(n / 2);
  const [resourceType, compute, image] = TYPES[resource % TYPES.length] ?? TYPES[0];
  return {
    series: {
      accountId: prefix === "r" ? ACCOUNT : prefix,
      workspace: `workspace-${resource % WORKSPACES}`,
      resourceType,
      resourceName: `${prefix}-${resource}`,
      resourceUuid: `uuid-${resource}`,
      dimension: n % 2 === 0 ? compute : image,
    },
    startMs: hour * HOUR_MS,
    endMs: (hour + 1) * HOUR_MS,
    quantity: 2048 * HOUR_MS,
    key: "b",
  };
}
