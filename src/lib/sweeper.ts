/**
 * Deadlines for very many short-lived objects without a timer each: all of them are in one set, and one coarse interval
 * checks them. `now` is the time of the last tick, cheap enough to read on every byte. A deadline is met to within one
 * tick.
 */
export interface Sweepable {
  /** Called once per tick with the current time. */
  sweep(nowMs: number): void;
  /** Called when the sweeper stops: the deadline is not checked any more. */
  close(): void;
}

export class Sweeper {
  now: number;
  #all = new Set<Sweepable>();
  #timer: NodeJS.Timeout;

  /** The clock must be monotonic: deadlines are differences. */
  constructor(tickMs: number, clock: () => number = () => performance.now()) {
    this.now = clock();
    this.#timer = setInterval(() => {
      this.now = clock();
      for (const one of this.#all) one.sweep(this.now);
    }, tickMs);
    this.#timer.unref();
  }

  get size(): number {
    return this.#all.size;
  }

  add(one: Sweepable): void {
    this.#all.add(one);
  }

  delete(one: Sweepable): void {
    this.#all.delete(one);
  }

  [Symbol.iterator](): Iterator<Sweepable> {
    return this.#all.values();
  }

  stop(): void {
    clearInterval(this.#timer);
    for (const one of this.#all) one.close();
    this.#all.clear();
  }
}
