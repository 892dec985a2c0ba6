/** Parses durations and dates of clients, and finds the earliest of several expiry times. */
import { invalidField } from "../contract/errors.ts";
import { DAY_MS } from "../lib/time/clock.ts";
import { parseDurationMs } from "../lib/time/duration.ts";

/** Longest lifetime, about ten years: a longer one is a typing error. */
export const LIFETIME_MAX_MS = 3660 * DAY_MS;

const ISO_DATE = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?$/;

export function checkedDurationMs(path: string, text: string): number {
  const ms = parseDurationMs(text);
  if (ms === null || ms <= 0 || ms > LIFETIME_MAX_MS)
    throw invalidField(path, "must be a duration such as 30s, 15m, 24h, 7d or 2w, at most ten years");
  return ms;
}

export function checkedDateMs(path: string, text: string): number {
  const ms = ISO_DATE.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw invalidField(path, "must be a date and time such as 2026-12-31T23:59:00Z");
  return ms;
}

/** Refuses a past date unless it equals the stored one: clients send stored dates back with every update. */
export function checkedFutureMs(path: string, text: string, nowMs: number, stored: unknown): number {
  const ms = checkedDateMs(path, text);
  if (ms <= nowMs && text !== stored) throw invalidField(path, "must be in the future");
  return ms;
}

export interface Lived {
  spec: Record<string, unknown>;
  createdAt: number;
}

/** When the resource expires: by `ttl` (from creation) or `expires`, whichever is first; null = never. */
export function endOf(
  { ttl, expires }: { ttl?: unknown; expires?: unknown },
  { createdAt }: Pick<Lived, "createdAt">,
): number | null {
  const byAge = typeof ttl === "string" ? parseDurationMs(ttl) : null;
  const byDate = typeof expires === "string" ? Date.parse(expires) : Number.NaN;
  const ends = [...(byAge === null ? [] : [createdAt + byAge]), ...(Number.isNaN(byDate) ? [] : [byDate])];
  return ends.length === 0 ? null : Math.min(...ends);
}
