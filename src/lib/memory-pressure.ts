/** Whether this process has nearly used up its memory: new work is refused then, before the system ends the process. */
import { getHeapStatistics } from "node:v8";

/** Part of the memory above which there is no new work. Requests in flight need the rest. */
const HIGH = 0.9;
/** Interval between two looks: a look costs some microseconds, and memory takes longer than that to fill. */
const LOOK_MS = 250;

export interface MemoryUse {
  used: number;
  max: number;
}

export class MemoryPressure {
  readonly #read: () => readonly MemoryUse[];
  readonly #now: () => number;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #isHigh = false;

  constructor(now: () => number, read: () => readonly MemoryUse[] = ownUse) {
    this.#now = now;
    this.#read = read;
  }

  get isHigh(): boolean {
    const nowMs = this.#now();
    if (nowMs - this.#lookedMs >= LOOK_MS) {
      this.#lookedMs = nowMs;
      this.#isHigh = this.#read().some(({ used, max }) => used > max * HIGH);
    }
    return this.#isHigh;
  }
}

/** The heap of JavaScript, and all memory of the process where its container has a limit. */
function ownUse(): MemoryUse[] {
  const { used_heap_size: used, heap_size_limit: max } = getHeapStatistics();
  const limit = process.constrainedMemory();
  return [{ used, max }, ...(limit > 0 ? [{ used: process.memoryUsage.rss(), max: limit }] : [])];
}
