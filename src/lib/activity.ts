/**
 * Open requests and the time of the last one, by key. The gateway writes it; the idle timeout of workloads reads it. It
 * lives in one process, because the connections that it counts do.
 */
import type { Clock } from "./time/clock.ts";

export class Activity {
  #clock: Clock;
  #entries = new Map<string, { open: number; lastMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts one open request until the returned function is called. */
  begin(key: string): () => void {
    const entry = this.#entries.get(key) ?? { open: 0, lastMs: 0 };
    this.#entries.set(key, entry);
    entry.open += 1;
    entry.lastMs = this.#clock.now();
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      entry.open -= 1;
      entry.lastMs = this.#clock.now();
    };
  }

  openOf(key: string): number {
    return this.#entries.get(key)?.open ?? 0;
  }

  /** The time of the key's last request; 0 when there was none. */
  lastOf(key: string): number {
    return this.#entries.get(key)?.lastMs ?? 0;
  }

  /** Keys with a request open now or since `sinceMs`, each with the time of its last request. */
  usedSince(sinceMs: number): Map<string, number> {
    const used = new Map<string, number>();
    for (const [key, { open, lastMs }] of this.#entries)
      if (open > 0 || lastMs >= sinceMs) used.set(key, open > 0 ? this.#clock.now() : lastMs);
    return used;
  }

  forget(key: string): void {
    if (this.openOf(key) === 0) this.#entries.delete(key);
  }
}
