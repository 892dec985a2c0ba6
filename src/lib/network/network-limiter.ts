/** Token buckets by client address: one for each network that the address belongs to, larger for wider networks. */
import { createRateLimiter, type RateLimit, type RateLimiter } from "../rate-limiter.ts";
import type { Clock } from "../time/clock.ts";
import { clientNetworks, NETWORK_LEVELS } from "./client-network.ts";

export function createNetworkLimiter(clock: Clock, { burst, perMinute }: RateLimit): RateLimiter {
  const limiters = NETWORK_LEVELS.map((share) =>
    createRateLimiter(clock, { burst: burst * share, perMinute: perMinute * share }),
  );
  const longest = (address: string, ask: (limiter: RateLimiter, name: string) => number): number =>
    Math.max(
      ...clientNetworks(address).map(({ name }, level) => {
        const limiter = limiters[level];
        return limiter === undefined ? 0 : ask(limiter, name);
      }),
    );
  const waitMs = (address: string): number => longest(address, (limiter, name) => limiter.waitMs(name));
  return {
    waitMs,
    take: (address) => waitMs(address) || longest(address, (limiter, name) => limiter.take(name)),
  };
}
