/**
 * Leases that this server holds while it works. They are short, so that another server soon continues the work of a
 * killed one, and are renewed together while the work goes on. When a lease is lost because the database was
 * unreachable for too long, its holder is told to stop.
 */
import { SECOND_MS } from "../lib/time/clock.ts";
import type { Lease, Leases } from "../store/leases.ts";

/** Lease length: two renewals may fail. */
const LEASE_MS = 15 * SECOND_MS;
const RENEW_MS = 5 * SECOND_MS;

export interface HeldLease {
  /** Aborts when another server may have taken the lease. */
  lost: AbortSignal;
  release(): Promise<void>;
}

export class HeldLeases {
  readonly #leases: Leases;
  readonly #holder: string;
  readonly #onError: (error: unknown) => void;
  readonly #held = new Map<string, { lease: Lease; abort: AbortController }>();
  readonly #timer: NodeJS.Timeout;

  constructor(leases: Leases, holder: string, onError: (error: unknown) => void) {
    this.#leases = leases;
    this.#holder = holder;
    this.#onError = onError;
    this.#timer = setInterval(() => void this.renew(), RENEW_MS).unref();
  }

  /** Returns null while another server holds the lease. */
  async take(name: string): Promise<HeldLease | null> {
    const lease = await this.#leases.acquire(name, this.#holder, LEASE_MS);
    if (!lease) return null;
    const abort = new AbortController();
    this.#held.set(name, { lease, abort });
    return {
      lost: abort.signal,
      release: async () => {
        this.#held.delete(name);
        await this.#leases.release(lease);
      },
    };
  }

  async renew(): Promise<void> {
    const held = [...this.#held.values()];
    if (held.length === 0) return;
    try {
      const names = held.map(({ lease }) => lease.name);
      const kept = await this.#leases.renew(this.#holder, names, LEASE_MS);
      for (const { lease, abort } of held) if (!kept.has(lease.name)) abort.abort(lostLease(lease.name));
    } catch (error) {
      this.#onError(error);
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

const lostLease = (name: string): Error => new Error(`the lease ${name} was lost; another server may have it`);
