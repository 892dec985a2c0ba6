/**
 * Memory back after work: a burst of requests leaves a heap several times its resting size, and most sandboxes rest most
 * of the time. Once nothing was asked for a while the heap is shrunk, once.
 */
import { shrinkMemory } from "./bun.ts";

const IDLE_MS = 3_000;

export class IdleTrim {
  #busy = 0;
  #timer: NodeJS.Timeout | null = null;

  /** Work begins; call what it returns when it ends. */
  begin(): () => void {
    this.#busy += 1;
    return () => {
      this.#busy -= 1;
      this.#rest();
    };
  }

  #rest(): void {
    // One timer per pause, not per request: it looks again when work went on meanwhile.
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      if (this.#busy === 0) shrinkMemory();
    }, IDLE_MS).unref();
  }
}
