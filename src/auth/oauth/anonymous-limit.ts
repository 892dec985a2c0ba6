/**
 * Limits the writes that a client without credentials may cause: beginning a sign-in, requesting a device code, trying
 * one. Counted in memory, by address and for all addresses together, at all servers of the database: counting itself
 * writes nothing.
 */
import { createNetworkLimiter } from "../../lib/network/network-limiter.ts";
import { createRateLimiter } from "../../lib/rate-limiter.ts";
import { type Clock, SECOND_MS } from "../../lib/time/clock.ts";
import { ALONE, type UseChannel } from "../../lib/use-channel.ts";
import { OauthError } from "./request.ts";

/** The limit for all addresses together, as a multiple of the limit for one. */
const ADDRESSES_AT_ONCE = 20;

export type AnonymousLimit = (address: string) => void;

export function createAnonymousLimit(clock: Clock, perMinute: number, channel: UseChannel = ALONE): AnonymousLimit {
  const byAddress = createNetworkLimiter(clock, { burst: perMinute, perMinute });
  const together = perMinute * ADDRESSES_AT_ONCE;
  const all = createRateLimiter(clock, { burst: together, perMinute: together });
  const take = (address: string): number => byAddress.take(address) || all.take("all");
  channel.hear(take);
  return (address) => {
    const waitMs = take(address);
    if (waitMs > 0) throw new TooManyWrites(Math.ceil(waitMs / SECOND_MS));
    channel.tell(address);
  };
}

export class TooManyWrites extends OauthError {
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number) {
    super("temporarily_unavailable", `Too many requests. Try again in ${retryAfterSeconds} s.`, 429);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}
