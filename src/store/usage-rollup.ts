/**
 * How events become rollups. An event never crosses a full hour (longer ones are split first), so the hour is the
 * ground that everything else is summed from. The levels are data: each grain once per resource, and once without
 * resource names for the questions that do not ask for them.
 */
import { dayStart, hourMs, hourOf, monthStart } from "../lib/utc-calendar.ts";
import type { Grain, UsageEvent, UsageRate } from "./usage-port.ts";

export interface RollupLevel {
  id: number;
  grain: Grain;
  /** Whether rows are kept per resource, or only per workspace, type and dimension. */
  named: boolean;
  bucket(hour: number): number;
}

export const HOUR_LEVEL: RollupLevel = { id: 1, grain: "hour", named: true, bucket: (hour) => hour };

export const ROLLUP_LEVELS: readonly RollupLevel[] = [
  HOUR_LEVEL,
  { id: 2, grain: "day", named: true, bucket: dayStart },
  { id: 3, grain: "month", named: true, bucket: monthStart },
  { id: 4, grain: "hour", named: false, bucket: (hour) => hour },
  { id: 5, grain: "day", named: false, bucket: dayStart },
  { id: 6, grain: "month", named: false, bucket: monthStart },
];

export function levelOf(grain: Grain, named: boolean): RollupLevel {
  const level = ROLLUP_LEVELS.find((candidate) => candidate.grain === grain && candidate.named === named);
  if (!level) throw new Error(`no rollup level for grain ${grain}`);
  return level;
}

/** [startMs, endMs) cut at full hours. */
export function hourPieces(startMs: number, endMs: number): { startMs: number; endMs: number }[] {
  const pieces: { startMs: number; endMs: number }[] = [];
  for (let from = startMs; from < endMs; ) {
    const to = Math.min(endMs, hourMs(hourOf(from) + 1));
    pieces.push({ startMs: from, endMs: to });
    from = to;
  }
  return pieces;
}

/** The event cut at full hours. The parts add up to exactly the whole, whatever the quantity. */
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
 * The share of an event that lies in [fromMs, toMs). Shares are differences of one rounded-down running total, so the
 * shares of adjoining windows add up to the whole.
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
