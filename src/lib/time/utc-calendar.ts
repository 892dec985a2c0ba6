/**
 * The UTC calendar in whole hours since 1970. Every bucket of every grain is named by its first hour, so one small
 * integer orders, groups and compares them all. UTC has no daylight saving time; Date handles leap days.
 */
import { HOUR_MS } from "./clock.ts";

export const DAY_HOURS = 24;
export const WEEK_HOURS = 7 * DAY_HOURS;
/** 1970-01-01 was a Thursday: the Monday of its week lies three days earlier. */
export const WEEK_SHIFT_HOURS = 3 * DAY_HOURS;

export const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS);
export const hourMs = (hour: number): number => hour * HOUR_MS;

export const dayStart = (hour: number): number => Math.floor(hour / DAY_HOURS) * DAY_HOURS;
export const weekStart = (hour: number): number =>
  Math.floor((hour + WEEK_SHIFT_HOURS) / WEEK_HOURS) * WEEK_HOURS - WEEK_SHIFT_HOURS;

export function monthStart(hour: number): number {
  const date = new Date(hourMs(hour));
  return hourOf(Date.UTC(date.getUTCFullYear(), date.getUTCMonth()));
}

export function nextMonthStart(hour: number): number {
  const date = new Date(hourMs(hour));
  return hourOf(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1));
}

/** RFC 3339 without a fraction: `2026-03-01T00:00:00Z`. */
export const hourToRfc3339 = (hour: number): string => `${new Date(hourMs(hour)).toISOString().slice(0, 19)}Z`;

const RFC3339_UTC = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:Z|\+00:00|-00:00)$/i;

/**
 * Strict RFC 3339 in UTC, to the millisecond (finer digits are cut off); null for anything else: other offsets, dates
 * without a time, days or hours that do not exist, leap seconds.
 */
export function parseRfc3339Utc(text: string): number | null {
  const match = RFC3339_UTC.exec(text);
  if (!match) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number);
  const millisecond = Number((match[7] ?? "").slice(0, 3).padEnd(3, "0"));
  const date = new Date(0);
  // setUTCFullYear and not Date.UTC: the latter reads the years 0 to 99 as 1900 to 1999.
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second, millisecond);
  const same =
    date.getUTCFullYear() === year &&
    date.getUTCMonth() === month - 1 &&
    date.getUTCDate() === day &&
    date.getUTCHours() === hour &&
    date.getUTCMinutes() === minute &&
    date.getUTCSeconds() === second;
  return same ? date.getTime() : null;
}
