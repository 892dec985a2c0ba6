/**
 * Makes deliveries: claims due ones under a lease, passes each to the line for its phase, and stores the result.
 * Changes in the store wake it; a timer does too, in case a notification is lost.
 */
import type { Log } from "../kinds/port.ts";
import { backoffMs } from "../lib/backoff.ts";
import { randomWord } from "../lib/ids.ts";
import type { Running } from "../lib/lifecycle.ts";
import { SECOND_MS } from "../lib/time/clock.ts";
import type { Delivery, DeliveryLine, DeliveryOutcome } from "../store/deliveries/delivery.ts";
import type { Store } from "../store/store.ts";

export interface DeliveriesOptions {
  store: Pick<Store, "deliveries">;
  log: Log;
  /**
   * Id of this server's machine and data folder; deliveries held by an earlier process there are taken over at once.
   */
  place: string;
  lines: readonly DeliveryLine[];
}

/** Lease of a delivery: another server takes it over after this long without a renewal. */
const LEASE_MS = 30 * SECOND_MS;
const RENEW_MS = 10 * SECOND_MS;
const LOOK_MS = SECOND_MS;
/** Deliveries claimed at once; because of that, slightly more than `ofOneMax` may belong to one workload. */
const BATCH = 8;
/** Backoff after an unexpected error. */
const TROUBLE = { baseMs: SECOND_MS, maxMs: 60 * SECOND_MS };
/** Bytes of requests held in memory; above this, no more deliveries are claimed. */
const IN_HAND_BYTES_MAX = 64 * 1024 * 1024;
const HOLDER_LENGTH = 8;
const STOPPING = new Error("the server is stopping");
const LOST = new Error("the lease of this delivery was lost");

interface WorkerOptions extends DeliveriesOptions {
  holder: string;
}

interface InHand {
  delivery: Delivery;
  abort: AbortController;
  done: Promise<void>;
}

export async function startDeliveries(options: DeliveriesOptions): Promise<Running> {
  const { store, place, lines } = options;
  await store.deliveries.release(`${place}/`);
  const holder = `${place}/${randomWord(HOLDER_LENGTH)}`;
  const workers = lines.map((line) => new LineWorker(line, { ...options, holder }));
  const unsubscribe = store.deliveries.onChange((phase) => {
    for (const worker of workers) worker.wake(phase);
  });
  return {
    async stop() {
      unsubscribe();
      await Promise.all(workers.map((worker) => worker.stop()));
    },
  };
}

class LineWorker {
  readonly #line: DeliveryLine;
  readonly #options: WorkerOptions;
  readonly #inHand = new Map<string, InHand>();
  readonly #timers: NodeJS.Timeout[];
  #taking: Promise<void> | null = null;
  #again = false;
  #stopped = false;

  constructor(line: DeliveryLine, options: WorkerOptions) {
    this.#line = line;
    this.#options = options;
    this.#timers = [
      setInterval(() => this.wake(line.phase), LOOK_MS).unref(),
      setInterval(() => void this.#renew(), RENEW_MS).unref(),
    ];
    this.wake(line.phase);
  }

  wake(phase: string): void {
    if (this.#stopped || (phase !== this.#line.phase && phase !== "")) return;
    this.#again = true;
    this.#taking ??= this.#takeAll().finally(() => {
      this.#taking = null;
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers) clearInterval(timer);
    await this.#taking;
    const left = [...this.#inHand.values()];
    for (const { abort } of left) abort.abort(STOPPING);
    await Promise.all(left.map(({ done }) => done));
  }

  async #takeAll(): Promise<void> {
    try {
      while (this.#again && !this.#stopped) {
        this.#again = false;
        while ((await this.#takeSome()) && !this.#stopped);
      }
    } catch (error) {
      this.#options.log.warn({ err: error, phase: this.#line.phase }, "deliveries could not be taken, trying again");
    }
  }

  async #takeSome(): Promise<boolean> {
    const { phase, atOnceMax } = this.#line;
    const { store, holder } = this.#options;
    const room = atOnceMax - this.#inHand.size;
    if (room <= 0 || this.#bytesInHand() > IN_HAND_BYTES_MAX || !(await store.deliveries.isDue(phase))) return false;
    const taken = await store.deliveries.claim(phase, {
      holder,
      leaseMs: LEASE_MS,
      limit: Math.min(room, BATCH),
      exceptUids: this.#busyUids(),
    });
    for (const delivery of taken) this.#begin(delivery);
    return taken.length > 0;
  }

  #bytesInHand(): number {
    let bytes = 0;
    for (const { delivery } of this.#inHand.values()) bytes += delivery.bytes;
    return bytes;
  }

  #busyUids(): string[] {
    const counts = new Map<string, number>();
    for (const { delivery } of this.#inHand.values()) counts.set(delivery.uid, (counts.get(delivery.uid) ?? 0) + 1);
    return [...counts].filter(([, count]) => count >= this.#line.ofOneMax).map(([uid]) => uid);
  }

  #begin(delivery: Delivery): void {
    const abort = new AbortController();
    const done = this.#make(delivery, abort.signal).finally(() => {
      this.#inHand.delete(delivery.id);
      this.wake(this.#line.phase);
    });
    this.#inHand.set(delivery.id, { delivery, abort, done });
  }

  async #make(delivery: Delivery, signal: AbortSignal): Promise<void> {
    const { log } = this.#options;
    try {
      await this.#settle(delivery, await this.#outcomeOf(delivery, signal));
    } catch (error) {
      // The lease expires, and the delivery is made again.
      log.warn({ err: error, delivery: delivery.id }, "the end of a delivery could not be recorded");
    }
  }

  async #outcomeOf(delivery: Delivery, signal: AbortSignal): Promise<DeliveryOutcome> {
    try {
      return await this.#line.deliver(delivery, signal);
    } catch (error) {
      if (signal.aborted) return { do: "retry", afterMs: 0, failed: false };
      this.#options.log.warn({ err: error, delivery: delivery.id }, "a delivery failed, trying again");
      return { do: "retry", afterMs: backoffMs(delivery.failures, TROUBLE), failed: true };
    }
  }

  async #settle(delivery: Delivery, outcome: DeliveryOutcome): Promise<void> {
    const { deliveries } = this.#options.store;
    if (outcome.do === "finish") await deliveries.finish(delivery);
    else if (outcome.do === "retry") await deliveries.retry(delivery, outcome.afterMs, outcome.failed);
    else await deliveries.follow(delivery, outcome.phase, outcome.payload, outcome.withinMs);
  }

  async #renew(): Promise<void> {
    const held = [...this.#inHand.values()];
    if (held.length === 0) return;
    const { store, holder, log } = this.#options;
    try {
      const ids = held.map(({ delivery }) => delivery.id);
      const ours = await store.deliveries.renew(holder, ids, LEASE_MS);
      for (const { delivery, abort } of held)
        if (!ours.has(delivery.id) && this.#inHand.get(delivery.id)?.abort === abort) abort.abort(LOST);
    } catch (error) {
      log.warn({ err: error }, "leases of deliveries could not be renewed");
    }
  }
}
