/** When a failed attempt is retried, at the same model or the next one. Pure: every rule is a row of the test table. */

import { fieldOf } from "../http/fields.ts";
import { backoffMs } from "../lib/backoff.ts";

export interface RetryRules {
  /** Further attempts at the same model. */
  retriesMax: number;
  baseMs: number;
  maxMs: number;
  /** A provider that asks for a longer pause is not waited for. */
  retryAfterMaxMs: number;
}

export const RETRY_DEFAULTS: RetryRules = { retriesMax: 2, baseMs: 250, maxMs: 4000, retryAfterMaxMs: 10_000 };

/** Passing trouble of the provider: the same request may well succeed in a moment. */
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529]);
/** Trouble with the account or the key: another model may have a better one. */
const ACCOUNT = new Set([401, 402, 403]);

/** The provider failed, not the request. */
export const isTrouble = (status: number): boolean => PASSING.has(status) || ACCOUNT.has(status);

export type RetryVerdict = { do: "deliver" } | { do: "retry"; delayMs: number } | { do: "next" };

export interface Failed {
  /** Null when no answer came at all. */
  status: number | null;
  /** The same request at the same place would fail the same way, or has been waited for long enough. */
  hopeless: boolean;
  /** Names and values in turn. */
  headers: readonly string[];
  /** Attempts at this model that were made, this one included. */
  attempts: number;
  hasNext: boolean;
}

export function judge(failed: Failed, rules: RetryRules, nowMs: number, random: () => number): RetryVerdict {
  const { status, hopeless, headers, attempts, hasNext } = failed;
  const passing = status === null || PASSING.has(status);
  if (!passing && !(ACCOUNT.has(status) && hasNext)) return { do: "deliver" };
  const asked = retryAfterMs(headers, nowMs);
  const patient = asked === null || asked <= rules.retryAfterMaxMs;
  if (
    passing &&
    !hopeless &&
    attempts <= rules.retriesMax &&
    patient &&
    fieldOf(headers, "x-should-retry") !== "false"
  ) {
    const jittered = backoffMs(attempts - 1, rules, random);
    // Sooner than asked would be refused again; the jitter spreads those who were asked the same.
    return { do: "retry", delayMs: asked === null ? jittered : asked + Math.floor(jittered / 4) };
  }
  return hasNext ? { do: "next" } : { do: "deliver" };
}

/** The pause a provider asks for, in its own exact header or in the standard one; null when it asks for none. */
export function retryAfterMs(headers: readonly string[], nowMs: number): number | null {
  const exact = Number(fieldOf(headers, "retry-after-ms") ?? Number.NaN);
  if (exact >= 0) return exact;
  const text = fieldOf(headers, "retry-after");
  if (text === undefined) return null;
  const inSeconds = Number(text);
  if (text.trim() !== "" && inSeconds >= 0) return inSeconds * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, date - nowMs);
}
