/**
 * A started thing that can be stopped. `start` functions are all-or-nothing and return a Running; `stop` is idempotent.
 */
export interface Running {
  stop(): Promise<void>;
}

/**
 * Collects started things and stops them in reverse order. A failing stop does not keep the others from running; the
 * first error is thrown at the end.
 */
export class Stack implements Running {
  #stops: (() => Promise<void> | void)[] = [];
  #stopping: Promise<void> | null = null;

  add<T extends Running>(running: T): T {
    this.defer(() => running.stop());
    return running;
  }

  defer(stop: () => Promise<void> | void): void {
    this.#stops.push(stop);
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#unwind();
    return this.#stopping;
  }

  async #unwind(): Promise<void> {
    const errors: unknown[] = [];
    for (const stop of this.#stops.reverse()) {
      try {
        await stop();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
