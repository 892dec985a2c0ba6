/**
 * The window of a metrics query and its buckets. Buckets are aligned to UTC: full hours, midnights, Mondays, first days
 * of a month. The first and last bucket may extend beyond the window; they carry the timestamp of their own start and
 * count only usage inside the window.
 */
import { PlatformError } from "../contract/errors.ts";
import { DAY_MS } from "../lib/time/clock.ts";
import {
  DAY_HOURS,
  dayStart,
  hourMs,
  hourOf,
  monthStart,
  nextMonthStart,
  parseRfc3339Utc,
  WEEK_HOURS,
  WEEK_SHIFT_HOURS,
  weekStart,
} from "../lib/time/utc-calendar.ts";
import type { Grain, UsagePart } from "../store/usage/port.ts";

const YEAR_MS = 365 * DAY_MS;

interface ResolutionRule {
  /** The coarsest rollup that fits into one bucket. */
  grain: Grain;
  bucketHours: number;
  shiftHours: number;
  bucketStart(hour: number): number;
  nextBucket(start: number): number;
  /** This resolution is the default for windows shorter than this. */
  defaultBelowMs: number;
  /** The longest window for which this resolution may be requested. */
  capMs(startMs: number): number;
  capText: string;
}

export const RESOLUTIONS = {
  hourly: {
    grain: "hour",
    bucketHours: 1,
    shiftHours: 0,
    bucketStart: (hour) => hour,
    nextBucket: (start) => start + 1,
    defaultBelowMs: 7 * DAY_MS,
    capMs: () => 7 * DAY_MS,
    capText: "7 days",
  },
  daily: {
    grain: "day",
    bucketHours: DAY_HOURS,
    shiftHours: 0,
    bucketStart: dayStart,
    nextBucket: (start) => start + DAY_HOURS,
    defaultBelowMs: 90 * DAY_MS,
    capMs: () => 90 * DAY_MS,
    capText: "90 days",
  },
  weekly: {
    grain: "week",
    bucketHours: WEEK_HOURS,
    shiftHours: WEEK_SHIFT_HOURS,
    bucketStart: weekStart,
    nextBucket: (start) => start + WEEK_HOURS,
    // Both 365 days and a calendar year with a leap day count as a year.
    defaultBelowMs: YEAR_MS,
    capMs: (startMs) => Math.max(YEAR_MS, sameTimeNextYear(startMs) - startMs),
    capText: "1 year",
  },
  monthly: {
    grain: "month",
    // The store returns days; months are summed afterwards, because no row spans two months.
    bucketHours: DAY_HOURS,
    shiftHours: 0,
    bucketStart: monthStart,
    nextBucket: nextMonthStart,
    defaultBelowMs: Number.POSITIVE_INFINITY,
    capMs: () => Number.POSITIVE_INFINITY,
    capText: "no limit",
  },
} as const satisfies Record<string, ResolutionRule>;

export type Resolution = keyof typeof RESOLUTIONS;
export const RESOLUTION_NAMES = Object.keys(RESOLUTIONS) as Resolution[];

/**
 * Nothing was metered before 1970, and nothing will be kept until 2200. Without an upper limit a monthly query could
 * ask for a hundred thousand buckets.
 */
export const TIME_MIN_MS = 0;
export const TIME_MAX_MS = Date.UTC(2200, 0, 1);

export interface MetricsWindow {
  startMs: number;
  endMs: number;
  /** Start and end as the caller wrote them, repeated in the answer. */
  startTime: string;
  endTime: string;
}

export function parseWindow(startTime: string, endTime: string): MetricsWindow {
  const startMs = parseTime("startTime", startTime);
  const endMs = parseTime("endTime", endTime);
  if (endMs <= startMs) throw invalidParameter("endTime", "must be later than startTime");
  return { startMs, endMs, startTime, endTime };
}

export function chooseResolution({ startMs, endMs }: MetricsWindow, asked: string | undefined): Resolution {
  const lengthMs = endMs - startMs;
  if (asked === undefined) {
    return RESOLUTION_NAMES.find((name) => lengthMs < RESOLUTIONS[name].defaultBelowMs) ?? "monthly";
  }
  const resolution = RESOLUTION_NAMES.find((name) => name === asked);
  if (!resolution) throw invalidParameter("resolution", `must be one of ${RESOLUTION_NAMES.join(", ")}`);
  const { capMs, capText } = RESOLUTIONS[resolution];
  if (lengthMs > capMs(startMs)) {
    throw invalidParameter("resolution", `${resolution} covers a window of at most ${capText}; ask for a coarser one`);
  }
  return resolution;
}

/** The start hours of all buckets that overlap the window. */
export function bucketHoursOf(window: MetricsWindow, resolution: Resolution): number[] {
  const { bucketStart, nextBucket } = RESOLUTIONS[resolution];
  const buckets: number[] = [];
  for (let hour = bucketStart(hourOf(window.startMs)); hourMs(hour) < window.endMs; hour = nextBucket(hour)) {
    buckets.push(hour);
  }
  return buckets;
}

/** The start hour of the bucket that an hour belongs to. */
export const bucketOf = (hour: number, resolution: Resolution): number => RESOLUTIONS[resolution].bucketStart(hour);

const GRAIN_RULES: Record<Grain, { start(hour: number): number; ceil(hour: number): number; finer: Grain | null }> = {
  hour: { start: (hour) => hour, ceil: (hour) => hour, finer: null },
  day: { start: dayStart, ceil: (hour) => dayStart(hour + DAY_HOURS - 1), finer: "hour" },
  week: { start: weekStart, ceil: (hour) => weekStart(hour + WEEK_HOURS - 1), finer: "day" },
  month: {
    start: monthStart,
    ceil: (hour) => (monthStart(hour) === hour ? hour : nextMonthStart(hour)),
    finer: "day",
  },
};

/**
 * Covers [startMs, endMs) without gap or overlap: whole buckets of the coarsest grain in the middle, finer ones around
 * them, and events for an hour that an end of the window cuts.
 */
export function coverWindow(startMs: number, endMs: number, coarsest: Grain): UsagePart[] {
  const firstHour = Math.ceil(startMs / hourMs(1));
  const lastHour = hourOf(endMs);
  if (firstHour > lastHour) return [{ from: "events", hour: lastHour, startMs, endMs }];
  const parts = coverHours(firstHour, lastHour, coarsest);
  if (startMs < hourMs(firstHour)) {
    parts.unshift({ from: "events", hour: firstHour - 1, startMs, endMs: hourMs(firstHour) });
  }
  if (hourMs(lastHour) < endMs) parts.push({ from: "events", hour: lastHour, startMs: hourMs(lastHour), endMs });
  return parts;
}

function coverHours(startHour: number, endHour: number, grain: Grain): UsagePart[] {
  if (startHour >= endHour) return [];
  const { start, ceil, finer } = GRAIN_RULES[grain];
  const middleStart = ceil(startHour);
  const middleEnd = start(endHour);
  if (finer && middleStart >= middleEnd) return coverHours(startHour, endHour, finer);
  return [
    ...(finer ? coverHours(startHour, middleStart, finer) : []),
    { from: "rollup", grain, startHour: middleStart, endHour: middleEnd },
    ...(finer ? coverHours(middleEnd, endHour, finer) : []),
  ];
}

function parseTime(parameter: string, text: string): number {
  const ms = parseRfc3339Utc(text);
  if (ms === null) throw invalidParameter(parameter, "must be RFC 3339 in UTC, such as 2026-01-31T00:00:00Z");
  if (ms < TIME_MIN_MS || ms > TIME_MAX_MS) throw invalidParameter(parameter, "must lie between 1970 and 2200");
  return ms;
}

function sameTimeNextYear(ms: number): number {
  const date = new Date(ms);
  // 29 February plus a year is 1 March.
  date.setUTCFullYear(date.getUTCFullYear() + 1);
  return date.getTime();
}

export const invalidParameter = (parameter: string, reason: string): PlatformError =>
  new PlatformError("invalid_parameter", `${parameter} ${reason}.`, { body: { parameter } });
