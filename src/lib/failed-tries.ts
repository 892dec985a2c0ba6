/**
 * Limits tries with wrong credentials, by the network they come from, at all servers of the
 * database together. Credentials that were right lately are let
 * through, so that nobody locks out others who share an address.
 */
import { createHash } from "node:crypto";
import { createNetworkLimiter } from "./network/network-limiter.ts";
import type { RateLimiter } from "./rate-limiter.ts";
import type { Clock } from "./time/clock.ts";
import { ALONE, type UseChannel } from "./use-channel.ts";

/** Credentials that are remembered as right. The least lately used one makes room. */
const KNOWN_MAX = 10_000;

export class FailedTries {
  readonly #failures: RateLimiter;
  readonly #channel: UseChannel;
  /** Hashes of credentials, in order of last use. */
  readonly #known = new Set<string>();

  constructor(clock: Clock, perMinute: number, channel: UseChannel = ALONE) {
    this.#failures = createNetworkLimiter(clock, { burst: perMinute, perMinute });
    this.#channel = channel;
    channel.hear((address) => void this.#failures.take(address));
  }

  /** Milliseconds until a try with this credential is looked at; 0 for at once. */
  waitMs(address: string, credential: string): number {
    return this.#known.has(hashOf(credential)) ? 0 : this.#failures.waitMs(address);
  }

  failed(address: string, credential: string): void {
    this.#known.delete(hashOf(credential));
    if (this.#failures.take(address) === 0) this.#channel.tell(address);
  }

  passed(credential: string): void {
    const hash = hashOf(credential);
    this.#known.delete(hash);
    const [oldest] = this.#known;
    if (this.#known.size >= KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
    this.#known.add(hash);
  }
}

const hashOf = (credential: string): string => createHash("sha256").update(credential).digest("base64");
