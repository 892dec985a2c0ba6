/**
 * Work by key: a key is never worked on twice at once, a key added while it is being worked on is worked on again
 * afterwards, and a key added many times while it waits is worked on once.
 *
 * Each key is in one mode: waiting (in line) → running → (added to while running: waiting again) → gone, or delayed by a timer.
 */
import { backoffMs } from "./backoff.ts";
import type { Running } from "./lifecycle.ts";

export interface KeyedQueueOptions {
  /**
   * Processes a key. Returns the delay in milliseconds until the key is processed again, or undefined for no repeat.
   */
  work(key: string, signal: AbortSignal): Promise<number | Rest | undefined>;
  /** Called on every failure; the key is retried with exponential backoff. */
  onError(key: string, error: unknown, attempt: number): void;
  concurrency: number;
}

/** Result of a finished run. The run's own writes added its key `ownAdditions` times; the queue ignores those. */
export interface Rest {
  againMs: number;
  ownAdditions: number;
}

const RETRY = { baseMs: 200, maxMs: 60_000 };

export class KeyedQueue implements Running {
  #options: KeyedQueueOptions;
  #waiting = new Set<string>();
  #running = new Map<string, { additions: number; done: Promise<void> }>();
  #timers = new Map<string, NodeJS.Timeout>();
  #attempts = new Map<string, number>();
  #abort = new AbortController();

  constructor(options: KeyedQueueOptions) {
    this.#options = options;
  }

  add(key: string): void {
    if (this.#abort.signal.aborted) return;
    this.#clearTimer(key);
    const running = this.#running.get(key);
    if (running) running.additions += 1;
    else this.#waiting.add(key);
    this.#fill();
  }

  addAfter(key: string, delayMs: number): void {
    if (this.#abort.signal.aborted) return;
    this.#clearTimer(key);
    this.#timers.set(key, setTimeout(() => this.add(key), Math.min(delayMs, 2 ** 31 - 1)).unref());
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.#waiting.clear();
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  #fill(): void {
    for (const key of this.#waiting) {
      if (this.#running.size >= this.#options.concurrency) return;
      this.#waiting.delete(key);
      const state = { additions: 0, done: Promise.resolve() };
      this.#running.set(key, state);
      state.done = this.#run(key, state);
    }
  }

  async #run(key: string, state: { additions: number }): Promise<void> {
    let outcome: number | Rest | undefined;
    try {
      outcome = await this.#options.work(key, this.#abort.signal);
      this.#attempts.delete(key);
    } catch (error) {
      const attempt = this.#attempts.get(key) ?? 0;
      this.#attempts.set(key, attempt + 1);
      outcome = backoffMs(attempt, RETRY);
      if (!this.#abort.signal.aborted) this.#options.onError(key, error, attempt);
    }
    this.#running.delete(key);
    const { againMs, ownAdditions } = typeof outcome === "object" ? outcome : { againMs: outcome, ownAdditions: 0 };
    if (state.additions > ownAdditions) this.add(key);
    else if (againMs !== undefined) this.addAfter(key, againMs);
    this.#fill();
  }

  #clearTimer(key: string): void {
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
  }
}
