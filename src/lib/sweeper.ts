/**
 * Deadlines for very many short-lived things without a timer each: everything alive is in one set, and one coarse
 * interval looks through it. `now` is the time of the last look, free to read on every byte. A deadline is kept to
 * within one tick.
 */
export interface Sweepable {
  /** Called once per tick with the current time. */
  sweep(nowMs: number): void;
  /** Called when the sweeper itself stops: nobody will look at the deadline any more. */
  close(): void;
}

export class Sweeper {
  now: number;
  #all = new Set<Sweepable>();
  #timer: NodeJS.Timeout;

  /** The clock only has to be steady: deadlines are differences. */
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
