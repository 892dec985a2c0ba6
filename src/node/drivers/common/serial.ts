/** Mutual exclusion by key, and limited concurrency. */

/** Runs work on the same key one after the other. */
export class Serial {
  readonly #tails = new Map<string, Promise<unknown>>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const release = await this.hold(key);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Waits for the key; resolves with the function that releases it. */
  async hold(key: string): Promise<() => void> {
    const before = this.#tails.get(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#tails.set(key, promise);
    await before;
    return () => {
      if (this.#tails.get(key) === promise) this.#tails.delete(key);
      resolve();
    };
  }
}

/** Runs at most `size` pieces of work at once; the others wait in order. */
export class Gate {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(size: number) {
    this.#free = size;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
