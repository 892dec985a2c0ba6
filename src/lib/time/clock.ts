/** Time is an input: code that needs it takes a Clock, so that tests can control it. */
export interface Clock {
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

let lastMs = Number.NaN;
let lastText = "";

/**
 * Caches the last result: the same moment is often formatted several times in a row (created, updated, first event).
 */
export function toIso(ms: number): string {
  if (ms !== lastMs) {
    lastText = new Date(ms).toISOString();
    lastMs = ms;
  }
  return lastText;
}
