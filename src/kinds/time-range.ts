/** The time range that a query asks for. */
import { PlatformError } from "../contract/errors.ts";
import { DAY_MS } from "../lib/time/clock.ts";

export interface TimeRange {
  fromMs: number;
  toMs: number;
}

/** `defaultMs` before the end where no start is given; at most `maxMs` long. */
export function rangeOf(
  { start, end }: { start?: string | undefined; end?: string | undefined },
  { nowMs, defaultMs, maxMs }: { nowMs: number; defaultMs: number; maxMs: number },
): TimeRange {
  const toMs = end === undefined ? nowMs : timeOf("end", end);
  const fromMs = start === undefined ? toMs - defaultMs : timeOf("start", start);
  if (fromMs > toMs) throw new PlatformError("bad_request", "start: must not be after end.");
  if (toMs - fromMs > maxMs)
    throw new PlatformError(
      "bad_request",
      `start: at most ${maxMs === DAY_MS ? "a day" : `${maxMs / DAY_MS} days`} before end; ask for one part after the other.`,
    );
  return { fromMs, toMs };
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?$/;

/** Times without a zone are UTC. */
export function timeOf(field: string, text: string): number {
  const match = TIME.exec(text);
  const time = match ? Date.parse(match[3] ? text : `${text}Z`) : Number.NaN;
  if (Number.isNaN(time))
    throw new PlatformError("bad_request", `${field}: must be a time such as 2026-01-31T12:00:00.`);
  return time;
}
