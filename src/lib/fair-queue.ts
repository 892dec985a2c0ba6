/**
 * Work of many owners, a few pieces at a time: owners take turns, so that whoever brings a thousand pieces delays
 * another owner by the pieces under way, and no more. An owner's waiting pieces are bounded.
 */
export interface FairQueueOptions {
  /** Pieces under way, of all owners. */
  atOnce: number;
  /** Pieces of one owner under way; without it an owner alone may take all places. */
  atOncePerOwner?: number;
  /** Waiting pieces of one owner; further ones are refused. */
  waitingMax: number;
}

export class FairQueue {
  readonly #options: FairQueueOptions;
  /** In the order of their turns; an owner whose piece has begun goes to the end. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #running = new Map<string, number>();
  #runningTotal = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  /** Whether a further piece of this owner would be taken. */
  hasRoom(owner: string): boolean {
    return (this.#waiting.get(owner)?.length ?? 0) < this.#options.waitingMax;
  }

  /** Null when too many pieces of this owner wait. */
  run<T>(owner: string, work: () => Promise<T>): Promise<T> | null {
    if (!this.hasRoom(owner)) return null;
    const waiting = this.#waiting.get(owner) ?? [];
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve);
    this.#waiting.set(owner, waiting);
    this.#fill();
    return promise.then(work).finally(() => {
      this.#count(owner, -1);
      this.#fill();
    });
  }

  #fill(): void {
    const { atOnce, atOncePerOwner = atOnce } = this.#options;
    while (this.#runningTotal < atOnce) {
      const next = [...this.#waiting].find(([owner]) => (this.#running.get(owner) ?? 0) < atOncePerOwner);
      if (next === undefined) return;
      const [owner, waiting] = next;
      this.#waiting.delete(owner);
      const begin = waiting.shift();
      if (waiting.length > 0) this.#waiting.set(owner, waiting);
      this.#count(owner, 1);
      begin?.();
    }
  }

  #count(owner: string, change: 1 | -1): void {
    const running = (this.#running.get(owner) ?? 0) + change;
    if (running === 0) this.#running.delete(owner);
    else this.#running.set(owner, running);
    this.#runningTotal += change;
  }
}
