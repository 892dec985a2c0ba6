/** Times that come again. One place for all who wait for them, so that they are late, or too late, by the same rules. */
import { Cron } from "croner";
import { MINUTE_MS } from "./clock.ts";

/** A firing that comes later than this, because no server ran, is not made good: it is recorded as missed. */
export const LATE_MAX_MS = MINUTE_MS;

/** The first time after another one; null when there is none. */
export type NextTime = (afterMs: number) => number | null;

/** The times of a pattern of five fields. Throws for what is no pattern or no time zone. */
export function cronTimes(pattern: string, timezone: string): NextTime {
  const cron = new Cron(pattern, { mode: "5-part", timezone, paused: true });
  return (afterMs) => cron.nextRun(new Date(afterMs))?.getTime() ?? null;
}

export interface DueTimes {
  /** The first that has not been dealt with; it may lie ahead. */
  first: number;
  /** The one to act on now; null when the first lies ahead, or all that passed are too late. */
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
  /** There were more than anybody counts. */
  more: boolean;
}

/** More are not counted one by one: a pattern of every minute makes half a million in a year. */
const COUNT_MAX = 100;

/** What passed from `first` on, up to but without `endMs`. */
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
