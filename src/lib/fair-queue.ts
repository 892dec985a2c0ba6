/**
 * Work of many owners, a few pieces at a time: owners take turns, so that whoever brings a thousand pieces delays
 * another owner by the pieces under way, and no more. An owner's waiting pieces are bounded.
 */
export interface FairQueueOptions {
  /** Pieces under way, of all owners. */
  atOnce: number;
  /** Waiting pieces of one owner; further ones are refused. */
  waitingMax: number;
}

export class FairQueue {
  readonly #options: FairQueueOptions;
  /** In the order of their turns; an owner whose piece has begun goes to the end. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #running = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  /** Null when too many pieces of this owner wait. */
  run<T>(owner: string, work: () => Promise<T>): Promise<T> | null {
    const waiting = this.#waiting.get(owner) ?? [];
    if (waiting.length >= this.#options.waitingMax) return null;
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve);
    this.#waiting.set(owner, waiting);
    this.#fill();
    return promise.then(work).finally(() => {
      this.#running -= 1;
      this.#fill();
    });
  }

  #fill(): void {
    while (this.#running < this.#options.atOnce) {
      const [next] = this.#waiting;
      if (next === undefined) return;
      const [owner, waiting] = next;
      this.#waiting.delete(owner);
      const begin = waiting.shift();
      if (waiting.length > 0) this.#waiting.set(owner, waiting);
      this.#running += 1;
      begin?.();
    }
  }
}
