/**
 * Limits the writes that a client without credentials may cause: beginning a sign-in, requesting a device code, trying
 * one. Counted in memory, by address and for all addresses together, so that counting itself writes nothing.
 */
import { createNetworkLimiter } from "../../lib/network/network-limiter.ts";
import { createRateLimiter } from "../../lib/rate-limiter.ts";
import { type Clock, SECOND_MS } from "../../lib/time/clock.ts";
import { OauthError } from "./request.ts";

/** The limit for all addresses together, as a multiple of the limit for one. */
const ADDRESSES_AT_ONCE = 20;

export type AnonymousLimit = (address: string) => void;

export function createAnonymousLimit(clock: Clock, perMinute: number): AnonymousLimit {
  const byAddress = createNetworkLimiter(clock, { burst: perMinute, perMinute });
  const together = perMinute * ADDRESSES_AT_ONCE;
  const all = createRateLimiter(clock, { burst: together, perMinute: together });
  return (address) => {
    const waitMs = byAddress.take(address) || all.take("all");
    if (waitMs > 0) throw new TooManyWrites(Math.ceil(waitMs / SECOND_MS));
  };
}

export class TooManyWrites extends OauthError {
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number) {
    super("temporarily_unavailable", `Too many requests. Try again in ${retryAfterSeconds} s.`, 429);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}
