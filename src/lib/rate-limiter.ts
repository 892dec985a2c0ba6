/**
 * Token buckets by key, in memory. A key may spend `burst` at once and gets `perMinute` back in a minute. Buckets that
 * are full again are forgotten, so memory is bounded by the keys that were busy lately, and by `keysMax` at most.
 */
import { type Clock, MINUTE_MS } from "./time/clock.ts";

export interface RateLimit {
  burst: number;
  perMinute: number;
}

export interface RateLimiter {
  /** Zero when the key may go on; otherwise the time in milliseconds after which it may. A refusal costs nothing. */
  take(key: string): number;
}

const KEYS_MAX = 10_000;

export function createRateLimiter(clock: Clock, { burst, perMinute }: RateLimit, keysMax = KEYS_MAX): RateLimiter {
  const intervalMs = MINUTE_MS / perMinute;
  const aheadMaxMs = (burst - 1) * intervalMs;
  /** The time at which the key's bucket is full again, in the order of their use. */
  const fullAt = new Map<string, number>();
  const makeRoom = (now: number): void => {
    for (const [key, at] of fullAt) if (at <= now) fullAt.delete(key);
    const [leastUsed] = fullAt.keys();
    if (fullAt.size >= keysMax && leastUsed !== undefined) fullAt.delete(leastUsed);
  };
  return {
    take(key) {
      const now = clock.now();
      const known = fullAt.get(key);
      if (known === undefined && fullAt.size >= keysMax) makeRoom(now);
      const at = Math.max(known ?? now, now);
      if (at - now > aheadMaxMs) return Math.ceil(at - now - aheadMaxMs);
      fullAt.delete(key); // set again below, so that the map's order is the order of use
      fullAt.set(key, at + intervalMs);
      return 0;
    },
  };
}
