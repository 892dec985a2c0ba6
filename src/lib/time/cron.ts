/** Recurring times. All users share one rule for late and missed times. */
import { Cron } from "croner";
import { MINUTE_MS } from "./clock.ts";

/** A slot that is later than this, because no server ran, does not fire: it is recorded as missed. */
export const LATE_MAX_MS = MINUTE_MS;

/** The first time after `afterMs`; null when there is none. */
export type NextTime = (afterMs: number) => number | null;

/** The times of a five-field cron pattern. Throws for an invalid pattern or time zone. */
export function cronTimes(pattern: string, timezone: string): NextTime {
  const cron = new Cron(pattern, { mode: "5-part", timezone, paused: true });
  return (afterMs) => cron.nextRun(new Date(afterMs))?.getTime() ?? null;
}

export interface DueTimes {
  /** The first unhandled time; it may be in the future. */
  first: number;
  /** The time to fire now; null when `first` is in the future or all passed times are too late. */
  fire: number | null;
}

export function dueTimes(next: NextTime, sinceMs: number, nowMs: number): DueTimes | null {
  const first = next(sinceMs);
  if (first === null) return null;
  const fresh = first > nowMs ? null : next(Math.max(sinceMs, nowMs - LATE_MAX_MS - 1));
  return { first, fire: fresh !== null && fresh <= nowMs ? fresh : null };
}

export interface Missed {
  first: number;
  last: number;
  count: number;
  /** True when counting stopped at COUNT_MAX. */
  more: boolean;
}

/** Most missed times to count: an every-minute pattern makes half a million in a year. */
const COUNT_MAX = 100;

/** The times in [first, endMs). */
export function missedTimes(next: NextTime, first: number, endMs: number): Missed | null {
  if (first >= endMs) return null;
  const missed = { first, last: first, count: 1, more: false };
  for (let at = next(first); at !== null && at < endMs; at = next(at)) {
    if (missed.count === COUNT_MAX) return { ...missed, more: true };
    missed.last = at;
    missed.count += 1;
  }
  return missed;
}
