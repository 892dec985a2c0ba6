/**
 * Maintenance of the ledger: rebuilding sums, repricing, pruning old events. Every transaction is
 * small (a day, an hour), so metering and queries continue meanwhile.
 */
import { sql } from "kysely";
import { HOUR_MS } from "../../lib/time/clock.ts";
import { DAY_HOURS, dayStart, hourMs, hourOf, monthStart, nextMonthStart } from "../../lib/time/utc-calendar.ts";
import type { Database, Dialect, Queries } from "../database/database.ts";
import { jsonRows } from "../database/json-rows.ts";
import { int, priced, running, type Sql } from "./parts.ts";
import type { RateOf } from "./port.ts";
import { lockLedger } from "./record.ts";
import { HOUR_LEVEL, levelOf, ROLLUP_LEVELS, type RollupLevel } from "./rollup.ts";

/** Levels whose buckets are at most one day long. */
const WITHIN_DAY = ROLLUP_LEVELS.filter(({ grain }) => grain === "hour" || grain === "day").map(({ id }) => id);

export interface Prices {
  rateOf: RateOf;
  dimensions: readonly string[];
}

export interface Repriced {
  dimension: string;
  quantity: bigint;
  /** The recorded cost. */
  cost: bigint;
  /** The cost at the given prices. */
  repriced: bigint;
}

export function createUsageUpkeep(database: Database, accountNumber: (accountId: string) => Promise<number | null>) {
  const { dialect, read } = database;

  return {
    /**
     * Rebuilds the sums of the whole months around [startMs, endMs) at the given prices: hours from their events (or
     * from their own quantities where events were pruned), all other levels from the hours.
     */
    async rebuild(
      accountId: string,
      startMs: number,
      endMs: number,
      prices: Prices,
      signal?: AbortSignal,
    ): Promise<void> {
      const account = await accountNumber(accountId);
      if (account === null) return;
      for (let month = monthStart(hourOf(startMs)); hourMs(month) < endMs; month = nextMonthStart(month)) {
        for (let day = month; day < nextMonthStart(month); day += DAY_HOURS) {
          signal?.throwIfAborted();
          if (await isEmpty(account, day)) continue;
          await alone((queries) => rebuildDay({ queries, dialect, account }, day, prices));
        }
        await alone((queries) => rebuildMonth({ queries, dialect, account }, month));
      }
    },

    /** The cost of the full hours in [startMs, endMs) at other prices. */
    async reprice(accountId: string, startMs: number, endMs: number, prices: Prices): Promise<Repriced[]> {
      const account = await accountNumber(accountId);
      const [startHour, endHour] = [hourOf(startMs), hourOf(endMs)];
      if (account === null || startHour >= endHour) return [];
      const rates = ratesBetween(dialect, startHour, endHour, prices);
      const rows = await database.report<{ dimension: string; quantity: string; cost: string; repriced: string }>(
        sql`SELECT s.dimension, CAST(SUM(r.quantity) AS TEXT) AS quantity, CAST(SUM(r.cost) AS TEXT) AS cost,
            CAST(SUM(${priced(sql`r.quantity`, sql`rates.numerator`, sql`rates.denominator`)}) AS TEXT) AS repriced
          FROM usage_rollups r JOIN usage_series s ON s.id = r.series_id JOIN ${rates} AS rates ON ${sameRate("r")}
          WHERE r.account = ${int(account)} AND r.level = ${sql.lit(HOUR_LEVEL.id)} AND r.bucket >= ${int(startHour)}
            AND r.bucket < ${int(endHour)} GROUP BY s.dimension ORDER BY s.dimension`.compile(read),
      );
      return rows.map((row) => ({
        dimension: row.dimension,
        quantity: BigInt(row.quantity),
        cost: BigInt(row.cost),
        repriced: BigInt(row.repriced),
      }));
    },

    /** All usage of the platform until now, by dimension. */
    async totalsAcrossAccounts(): Promise<{ dimension: string; quantity: bigint; cost: bigint }[]> {
      const open = running({ dialect, startMs: 0, endMs: Number.MAX_SAFE_INTEGER, isWanted: sql`true` });
      const rows = await database.report<{ dimension: string; quantity: string; cost: string }>(
        sql`SELECT s.dimension, CAST(SUM(u.quantity) AS TEXT) AS quantity, CAST(SUM(u.cost) AS TEXT) AS cost
          FROM (SELECT r.series_id AS series, r.cost, r.quantity FROM usage_accounts a CROSS JOIN usage_rollups r
              WHERE r.account = a.id AND r.level = ${sql.lit(levelOf("month", false).id)}
            UNION ALL SELECT o.series, o.cost, o.quantity FROM (${open}) AS o) AS u
          JOIN usage_series s ON s.id = u.series GROUP BY s.dimension ORDER BY s.dimension`.compile(read),
      );
      return rows.map(({ dimension, quantity, cost }) => ({
        dimension,
        quantity: BigInt(quantity),
        cost: BigInt(cost),
      }));
    },

    /**
     * Removes the events of days that ended before `beforeMs`; their sums stay. Returns the number of removed events.
     */
    async prune(beforeMs: number, signal?: AbortSignal): Promise<number> {
      const since = dayStart(hourOf(beforeMs));
      let removed = 0;
      for (;;) {
        signal?.throwIfAborted();
        const { rows } = await sql<{ oldest: number | null }>`SELECT MIN(start_ms) AS oldest FROM usage_events`.execute(
          read,
        );
        const oldest = rows[0]?.oldest ?? null;
        if (oldest === null || oldest >= hourMs(since)) return removed;
        removed += await alone(async (queries) => {
          // Move the retention mark before deleting: from then on these hours are read from their sums.
          await sql`INSERT INTO usage_retention (id, events_since) VALUES (1, ${int(since)})
            ON CONFLICT (id) DO UPDATE SET events_since = excluded.events_since`.execute(queries);
          const end = Math.min(hourMs(since), hourMs(hourOf(oldest) + 1));
          const result = await sql`DELETE FROM usage_events WHERE start_ms < ${int(end)}`.execute(queries);
          return Number(result.numAffectedRows ?? 0);
        });
      }
    },
  };

  async function isEmpty(account: number, day: number): Promise<boolean> {
    const end = day + DAY_HOURS;
    const { rows } = await sql<{ used: number }>`SELECT 1 AS used WHERE
      EXISTS (SELECT 1 FROM usage_events WHERE start_ms >= ${int(hourMs(day))} AND start_ms < ${int(hourMs(end))})
      OR EXISTS (SELECT 1 FROM usage_rollups r WHERE r.account = ${int(account)} AND r.level IN (${sql.join(WITHIN_DAY.map((id) => sql.lit(id)))})
        AND r.bucket >= ${int(day)} AND r.bucket < ${int(end)})`.execute(read);
    return rows.length === 0;
  }

  function alone<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return database.write(async ({ queries }) => {
      await lockLedger(database, queries, "alone");
      return work(queries);
    });
  }
}

interface Place {
  queries: Queries;
  dialect: Dialect;
  account: number;
}

async function rebuildDay(place: Place, day: number, prices: Prices): Promise<void> {
  const { queries, dialect, account } = place;
  const range = sql`bucket >= ${int(day)} AND bucket < ${int(day + DAY_HOURS)}`;
  const rates = ratesBetween(dialect, day, day + DAY_HOURS, prices);
  const { rows } = await sql<{ events_since: number }>`SELECT events_since FROM usage_retention`.execute(queries);
  const hasEvents = day >= (rows[0]?.events_since ?? 0);
  const source = hasEvents
    ? sql`SELECT e.series_id, e.start_ms / ${sql.lit(HOUR_MS)} AS bucket, CAST(SUM(e.quantity) AS BIGINT) AS quantity
        FROM usage_events e JOIN usage_series s ON s.id = e.series_id
        WHERE s.account = ${int(account)} AND e.start_ms >= ${int(hourMs(day))} AND e.start_ms < ${int(hourMs(day + DAY_HOURS))}
        GROUP BY 1, 2`
    : sql`SELECT series_id, bucket, quantity FROM usage_rollups
        WHERE account = ${int(account)} AND level = ${sql.lit(HOUR_LEVEL.id)} AND ${range}`;
  if (hasEvents) await deleteRange(place, HOUR_LEVEL, range);
  await sql`INSERT INTO usage_rollups (account, level, bucket, series_id, quantity, cost)
    SELECT s.account, ${sql.lit(HOUR_LEVEL.id)}, h.bucket, h.series_id, h.quantity,
      ${priced(sql`h.quantity`, sql`rates.numerator`, sql`rates.denominator`)}
    FROM (${source}) AS h JOIN usage_series s ON s.id = h.series_id JOIN ${rates} AS rates ON ${sameRate("h")}
    WHERE true
    ON CONFLICT (account, level, bucket, series_id) DO UPDATE SET cost = excluded.cost`.execute(queries);
  for (const [from, to, unnamed] of [
    [HOUR_LEVEL, levelOf("day", true), false],
    [HOUR_LEVEL, levelOf("hour", false), true],
    [levelOf("hour", false), levelOf("day", false), false],
  ] as const) {
    await deleteRange(place, to, range);
    await sumInto(place, { from, to, unnamed, range, bucket: to.grain === "hour" ? sql`r.bucket` : int(day) });
  }
}

/** Rebuilds all week and month buckets that overlap this month; a week may reach into the next one. */
async function rebuildMonth(place: Place, month: number): Promise<void> {
  for (const to of ROLLUP_LEVELS.filter(({ grain }) => grain === "week" || grain === "month")) {
    for (let bucket = to.bucket(month); bucket < nextMonthStart(month); bucket = to.next(bucket)) {
      const range = sql`bucket >= ${int(bucket)} AND bucket < ${int(to.next(bucket))}`;
      await deleteRange(place, to, range);
      await sumInto(place, { from: levelOf("day", to.named), to, unnamed: false, range, bucket: int(bucket) });
    }
  }
}

const deleteRange = ({ queries, account }: Place, level: RollupLevel, range: Sql) =>
  sql`DELETE FROM usage_rollups WHERE account = ${int(account)} AND level = ${sql.lit(level.id)} AND ${range}`.execute(
    queries,
  );

interface Summing {
  from: RollupLevel;
  to: RollupLevel;
  /** Whether rows with resource names are summed into rows without. */
  unnamed: boolean;
  range: Sql;
  bucket: Sql;
}

async function sumInto({ queries, account }: Place, { from, to, unnamed, range, bucket }: Summing): Promise<void> {
  await sql`INSERT INTO usage_rollups (account, level, bucket, series_id, quantity, cost)
    SELECT r.account, ${sql.lit(to.id)}, CAST(${bucket} AS BIGINT), ${unnamed ? sql`s.unnamed_id` : sql`r.series_id`},
      CAST(SUM(r.quantity) AS BIGINT), CAST(SUM(r.cost) AS BIGINT)
    FROM usage_rollups r ${unnamed ? sql`JOIN usage_series s ON s.id = r.series_id` : sql``}
    WHERE r.account = ${int(account)} AND r.level = ${sql.lit(from.id)} AND ${range}
    GROUP BY 1, 3, 4`.execute(queries);
}

/** Prices over a range of hours, one row per period with the same price. */
function ratesBetween(dialect: Dialect, startHour: number, endHour: number, { rateOf, dimensions }: Prices): Sql {
  const rows: [string, number, number, bigint, bigint][] = [];
  for (const dimension of dimensions) {
    let last: (typeof rows)[number] | undefined;
    for (let hour = startHour; hour < endHour; hour += 1) {
      const { numerator, denominator } = rateOf(dimension, hour);
      if (last?.[3] === numerator && last[4] === denominator) {
        last[2] = hour + 1;
        continue;
      }
      last = [dimension, hour, hour + 1, numerator, denominator];
      rows.push(last);
    }
  }
  const columns = {
    dimension: "text",
    start_hour: "bigint",
    end_hour: "bigint",
    numerator: "bigint",
    denominator: "bigint",
  } as const;
  return jsonRows(dialect, columns, rows);
}

const sameRate = (alias: string): Sql =>
  sql`rates.dimension = s.dimension AND ${sql.ref(`${alias}.bucket`)} >= rates.start_hour AND ${sql.ref(`${alias}.bucket`)} < rates.end_hour`;
