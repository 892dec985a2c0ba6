/**
 * Reading a window piece by piece, as SQL. Every piece yields rows of series, hour, cost and quantity:
 * - whole buckets from the rollups,
 * - an hour that is cut by the window from its events, or evenly from its sum where the events are gone,
 * - what is still running from the open spans, as far as their nodes have vouched for them.
 */
import { type RawBuilder, sql } from "kysely";
import { HOUR_MS } from "../../lib/time/clock.ts";
import { hourMs } from "../../lib/time/utc-calendar.ts";
import type { Dialect } from "../database/database.ts";
import { jsonRows } from "../database/json-rows.ts";
import type { RateOf, UsagePart } from "./port.ts";
import { HOUR_LEVEL, levelOf } from "./rollup.ts";

export type Sql = RawBuilder<unknown>;

export interface PartContext {
  dialect: Dialect;
  account: number;
  /** First hour with events; earlier hours have only their sums. */
  eventsSinceHour: number;
  /** Whether resource names are needed; otherwise sums without names are read. */
  named: boolean;
  /** Whether the filter leaves so few series that each is read separately. */
  selective: boolean;
  /** Condition for the rows of usage_series, `s`, with resource names, worded so that the filter's index is used. */
  isNamed: Sql;
  /** A condition on `s`, a row of usage_series. */
  isWanted: Sql;
  startMs: number;
  endMs: number;
  dimensions: readonly string[];
  rateOf: RateOf;
}

/** Rows of all parts and of the open spans; with `ofMembers` only those of `members`, each with its place. */
export function partsOf(parts: readonly UsagePart[], context: PartContext, ofMembers: boolean): Sql {
  const selects = parts.map((part) => {
    if (part.from === "events") return ofMembers ? placed(cutHour(part, context)) : cutHour(part, context);
    return ofMembers ? memberRollups(part, context) : rollups(part, context);
  });
  return sql.join([...selects, ofMembers ? placed(running(context)) : running(context)], sql` UNION ALL `);
}

type RollupPart = Extract<UsagePart, { from: "rollup" }>;
type EventsPart = Extract<UsagePart, { from: "events" }>;

function rollups(part: RollupPart, context: PartContext): Sql {
  const rows = sql`r.series_id AS series, r.bucket AS hour, r.cost AS cost, r.quantity AS quantity`;
  const level = sql.lit(levelOf(part.grain, context.named).id);
  // A single resource is found by its name and read along time; otherwise the window is read in storage order. SQLite
  // joins the tables of a CROSS JOIN in the order they are written.
  return context.selective
    ? sql`SELECT ${rows} FROM usage_series s CROSS JOIN usage_rollups r
        WHERE ${context.isWanted} AND ${context.isNamed} AND r.series_id = s.id AND r.level = ${level} AND ${within(part)}`
    : sql`SELECT ${rows} FROM usage_rollups r WHERE r.account = ${int(context.account)} AND r.level = ${level} AND ${within(part)}`;
}

function memberRollups(part: RollupPart, context: PartContext): Sql {
  const rows = sql`m.place AS place, r.bucket AS hour, r.cost AS cost, r.quantity AS quantity`;
  const level = sql.lit(levelOf(part.grain, context.named).id);
  return context.named
    ? sql`SELECT ${rows} FROM members m CROSS JOIN usage_rollups r
        WHERE r.series_id = m.series AND r.level = ${level} AND ${within(part)}`
    : sql`SELECT ${rows} FROM usage_rollups r CROSS JOIN members m
        WHERE r.account = ${int(context.account)} AND r.level = ${level} AND ${within(part)} AND m.series = r.series_id`;
}

const within = ({ startHour, endHour }: RollupPart): Sql =>
  sql`r.bucket >= ${int(startHour)} AND r.bucket < ${int(endHour)}`;

/** The part of each event of one hour that lies in the window, summed per series and then priced, like a full hour. */
function cutHour({ hour, startMs, endMs }: EventsPart, context: PartContext): Sql {
  const { dialect, account, eventsSinceHour, rateOf } = context;
  const source =
    hour >= eventsSinceHour
      ? sql`SELECT series_id, start_ms, end_ms, quantity FROM usage_events
          WHERE start_ms >= ${int(hourMs(hour))} AND start_ms < ${int(endMs)} AND (end_ms > ${int(startMs)} OR start_ms >= ${int(startMs)})`
      : sql`SELECT series_id, CAST(${int(hourMs(hour))} AS BIGINT) AS start_ms, CAST(${int(hourMs(hour + 1))} AS BIGINT) AS end_ms, quantity
          FROM usage_rollups WHERE account = ${int(account)} AND level = ${sql.lit(HOUR_LEVEL.id)} AND bucket = ${int(hour)}`;
  const share = sql`CASE WHEN e.end_ms = e.start_ms THEN e.quantity
    ELSE ${quantityUntil(int(endMs), dialect)} - ${quantityUntil(int(startMs), dialect)} END`;
  const rates = jsonRows(
    dialect,
    { dimension: "text", numerator: "bigint", denominator: "bigint" },
    context.dimensions.map((dimension) => {
      const { numerator, denominator } = rateOf(dimension, hour);
      return [dimension, numerator, denominator];
    }),
  );
  return sql`SELECT h.series_id AS series, ${int(hour)} + 0 AS hour,
      ${priced(sql`h.quantity`, sql`h.numerator`, sql`h.denominator`)} AS cost, h.quantity AS quantity
    FROM (SELECT e.series_id, rates.numerator, rates.denominator, CAST(SUM(${share}) AS BIGINT) AS quantity
      FROM (${source}) AS e CROSS JOIN usage_series s CROSS JOIN ${rates} AS rates
      WHERE s.id = e.series_id AND rates.dimension = s.dimension AND ${context.isWanted} GROUP BY e.series_id, rates.numerator, rates.denominator) AS h`;
}

/** Open spans, each limited to its own hour: it is settled at the end of that hour and must not count beyond it. */
export function running({
  dialect,
  startMs,
  endMs,
  isWanted,
}: Pick<PartContext, "dialect" | "startMs" | "endMs" | "isWanted">): Sql {
  const hourEnd = sql`(o.start_ms / ${sql.lit(HOUR_MS)} + 1) * ${sql.lit(HOUR_MS)}`;
  const until = sql`${least(dialect)}(v.covered_until, ${hourEnd}, ${int(endMs)})`;
  const since = sql`${greatest(dialect)}(o.start_ms, ${int(startMs)})`;
  return sql`SELECT o.series_id AS series, o.hour AS hour,
      ${priced(sql`o.quantity`, sql`o.price_numerator`, sql`o.price_denominator`)} AS cost, o.quantity AS quantity
    FROM (SELECT o.series_id, o.start_ms / ${sql.lit(HOUR_MS)} AS hour, o.rate * (${until} - ${since}) AS quantity,
        o.price_numerator, o.price_denominator
      FROM usage_spans o CROSS JOIN usage_meters v CROSS JOIN usage_series s
      WHERE v.node = o.node AND s.id = o.series_id AND ${isWanted}) AS o WHERE o.quantity > 0`;
}

const placed = (rows: Sql): Sql =>
  sql`SELECT m.place AS place, x.hour AS hour, x.cost AS cost, x.quantity AS quantity
    FROM (${rows}) AS x CROSS JOIN members m WHERE m.series = x.series`;

/** The quantity of event `e` used until `ms`, in integers that never exceed 64 bits. */
function quantityUntil(ms: Sql, dialect: Dialect): Sql {
  const elapsed = sql`(${least(dialect)}(${greatest(dialect)}(${ms}, e.start_ms), e.end_ms) - e.start_ms)`;
  const length = sql`(e.end_ms - e.start_ms)`;
  return sql`(e.quantity / ${length} * ${elapsed} + e.quantity % ${length} * ${elapsed} / ${length})`;
}

/** quantity x numerator / denominator, rounded half up, in integers that never exceed 64 bits. */
export const priced = (quantity: Sql, numerator: Sql, denominator: Sql): Sql =>
  sql`(${quantity} / ${denominator} * ${numerator} + ${quantity} % ${denominator} * (${numerator} / ${denominator})
    + (${quantity} % ${denominator} * (${numerator} % ${denominator}) + ${denominator} / 2) / ${denominator})`;

const least = (dialect: Dialect): Sql => (dialect === "sqlite" ? sql`MIN` : sql`LEAST`);
const greatest = (dialect: Dialect): Sql => (dialect === "sqlite" ? sql`MAX` : sql`GREATEST`);

/** An integer parameter: SQLite would take a JavaScript number for a float and divide accordingly. */
export const int = (value: number): Sql => sql`${BigInt(value)}`;
