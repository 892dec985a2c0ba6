/**
 * How events become rollups. An event never crosses a full hour (longer ones are split first), so every other sum is
 * built from hours. The levels are data: each grain once per resource, and once without resource names for queries that
 * do not need them.
 */
import {
  DAY_HOURS,
  dayStart,
  hourMs,
  hourOf,
  monthStart,
  nextMonthStart,
  WEEK_HOURS,
  weekStart,
} from "../../lib/time/utc-calendar.ts";
import type { Grain, UsageEvent, UsageQuestion, UsageRate } from "./port.ts";

export interface RollupLevel {
  id: number;
  grain: Grain;
  /** Whether rows are kept per resource, or only per workspace, type and dimension. */
  named: boolean;
  /** `bucket` returns the bucket of an hour, `next` the bucket after a bucket. */
  bucket(hour: number): number;
  next(bucket: number): number;
}

const HOUR = { grain: "hour", bucket: (hour: number) => hour, next: (bucket: number) => bucket + 1 } as const;
const DAY = { grain: "day", bucket: dayStart, next: (bucket: number) => bucket + DAY_HOURS } as const;
const WEEK = { grain: "week", bucket: weekStart, next: (bucket: number) => bucket + WEEK_HOURS } as const;
const MONTH = { grain: "month", bucket: monthStart, next: nextMonthStart } as const;

export const HOUR_LEVEL: RollupLevel = { id: 1, named: true, ...HOUR };

export const ROLLUP_LEVELS: readonly RollupLevel[] = [
  HOUR_LEVEL,
  { id: 2, named: true, ...DAY },
  { id: 3, named: true, ...MONTH },
  { id: 4, named: false, ...HOUR },
  { id: 5, named: false, ...DAY },
  { id: 6, named: false, ...MONTH },
  // Weeks exist only without names, where they are few rows; a year by week per resource is read from days.
  { id: 7, named: false, ...WEEK },
];

export function levelOf(grain: Grain, named: boolean): RollupLevel {
  const level = ROLLUP_LEVELS.find((candidate) => candidate.grain === grain && candidate.named === named);
  if (!level) throw new Error(`no rollup level for grain ${grain}`);
  return level;
}

/** Whether a query needs resource names; otherwise sums without names are read. */
export const asksForNames = ({ columns, filter }: Pick<UsageQuestion, "columns" | "filter">): boolean =>
  [...RESOURCE_COLUMNS, "subject" as const].some((column) => columns.includes(column) || column in filter);

/** Whether a filter selects one resource, or a few of the same name. */
export const namesResource = (filter: UsageQuestion["filter"]): boolean =>
  RESOURCE_COLUMNS.some((column) => column in filter);

/** Columns that identify a single resource. */
const RESOURCE_COLUMNS = ["resourceName", "resourceUuid"] as const;

/** Splits [startMs, endMs) at full hours. */
export function hourPieces(startMs: number, endMs: number): { startMs: number; endMs: number }[] {
  const pieces: { startMs: number; endMs: number }[] = [];
  for (let from = startMs; from < endMs; ) {
    const to = Math.min(endMs, hourMs(hourOf(from) + 1));
    pieces.push({ startMs: from, endMs: to });
    from = to;
  }
  return pieces;
}

/** Splits the event at full hours. The parts add up to exactly the whole, whatever the quantity. */
export function splitAtHours(event: UsageEvent): UsageEvent[] {
  if (isWithinHour(event)) return [event];
  return hourPieces(event.startMs, event.endMs).map((piece) => ({
    ...event,
    ...piece,
    quantity: Number(quantityWithin(event, piece.startMs, piece.endMs)),
  }));
}

export const isWithinHour = ({ startMs, endMs }: Pick<UsageEvent, "startMs" | "endMs">): boolean =>
  endMs <= hourMs(hourOf(startMs) + 1);

/**
 * The quantity of an event within [fromMs, toMs). It is the difference of two rounded-down running totals, so the
 * quantities of adjacent windows add up to the whole.
 */
export function quantityWithin(
  { startMs, endMs, quantity }: Pick<UsageEvent, "startMs" | "endMs" | "quantity">,
  fromMs: number,
  toMs: number,
): bigint {
  if (startMs === endMs) return startMs >= fromMs && startMs < toMs ? BigInt(quantity) : 0n;
  const until = (ms: number): bigint =>
    (BigInt(quantity) * BigInt(Math.min(Math.max(ms, startMs), endMs) - startMs)) / BigInt(endMs - startMs);
  return until(toMs) - until(fromMs);
}

export const overlaps = ({ startMs, endMs }: { startMs: number; endMs: number }, fromMs: number, toMs: number) =>
  startMs < toMs && (endMs > fromMs || startMs >= fromMs);

export const costOf = (quantity: bigint, { numerator, denominator }: UsageRate): bigint =>
  (2n * quantity * numerator + denominator) / (2n * denominator);
