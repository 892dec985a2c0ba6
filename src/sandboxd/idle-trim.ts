/**
 * Memory back after work: a burst of requests leaves a heap several times its resting size, and most sandboxes rest most
 * of the time. Once nothing was asked for a while the heap is shrunk, once. That drops compiled code too, so a sandbox
 * that waits for its owner keeps what it has loaded.
 */
import { shrinkMemory } from "./bun.ts";

const IDLE_MS = 3_000;

export class IdleTrim {
  readonly #mayTrim: () => boolean;
  #busy = 0;
  #lastEndMs = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(mayTrim: () => boolean) {
    this.#mayTrim = mayTrim;
  }

  /** Work begins; call what it returns when it ends. */
  begin(): () => void {
    this.#busy += 1;
    return () => {
      this.#busy -= 1;
      this.#lastEndMs = Date.now();
      this.#wait(IDLE_MS);
    };
  }

  /** One timer per pause, not per request: it waits on when there was work meanwhile. */
  #wait(delayMs: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      const restMs = this.#lastEndMs + IDLE_MS - Date.now();
      if (this.#busy > 0) return;
      if (restMs > 0) this.#wait(restMs);
      else if (this.#mayTrim()) shrinkMemory();
    }, delayMs).unref();
  }
}
