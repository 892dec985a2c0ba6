/**
 * Token buckets by key, in memory. A key may spend `burst` tokens at once and regains `perMinute` per minute. Full
 * buckets are dropped, so memory is bounded by the recently active keys and by `keysMax`.
 */
import { type Clock, MINUTE_MS } from "./time/clock.ts";

export interface RateLimit {
  burst: number;
  perMinute: number;
}

export interface RateLimiter {
  /** Returns 0 when the key may go on, otherwise the milliseconds until it may. A refusal spends no token. */
  take(key: string): number;
  /** The same without spending a token. */
  waitMs(key: string): number;
}

const KEYS_MAX = 10_000;

export function createRateLimiter(clock: Clock, { burst, perMinute }: RateLimit, keysMax = KEYS_MAX): RateLimiter {
  const intervalMs = MINUTE_MS / perMinute;
  const aheadMaxMs = (burst - 1) * intervalMs;
  /** The time at which each key's bucket is full again, in order of last use. */
  const fullAt = new Map<string, number>();
  const makeRoom = (now: number): void => {
    for (const [key, at] of fullAt) if (at <= now) fullAt.delete(key);
    const [leastUsed] = fullAt.keys();
    if (fullAt.size >= keysMax && leastUsed !== undefined) fullAt.delete(leastUsed);
  };
  /** When the bucket is full again. A time that no use can have led to is one of before the clock was set back. */
  const knownAt = (key: string, now: number): number | undefined => {
    const at = fullAt.get(key);
    return at === undefined || at - now > burst * intervalMs ? undefined : at;
  };
  const waitMs = (key: string): number => {
    const now = clock.now();
    return Math.max(0, Math.ceil((knownAt(key, now) ?? now) - now - aheadMaxMs));
  };
  return {
    waitMs,
    take(key) {
      const now = clock.now();
      const known = knownAt(key, now);
      if (!fullAt.has(key) && fullAt.size >= keysMax) makeRoom(now);
      const at = Math.max(known ?? now, now);
      if (at - now > aheadMaxMs) return waitMs(key);
      fullAt.delete(key); // set again below, so that the map stays in order of last use
      fullAt.set(key, at + intervalMs);
      return 0;
    },
  };
}
