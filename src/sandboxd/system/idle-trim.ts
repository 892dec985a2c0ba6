/**
 * Memory back after work: a burst of requests leaves a heap several times its resting size, and most sandboxes rest most
 * of the time. Once nothing was asked for a while the heap is shrunk, once. That drops compiled code too, so a sandbox
 * that waits for its owner keeps what it has loaded.
 */
import { shrinkMemory } from "../bun.ts";

const IDLE_MS = 3_000;

export class IdleTrim {
  readonly #mayTrim: () => boolean;
  readonly #shrink: () => void;
  #busy = 0;
  #lastEndMs = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(mayTrim: () => boolean, shrink = shrinkMemory) {
    this.#mayTrim = mayTrim;
    this.#shrink = shrink;
  }

  /** Work begins; call what it returns when it ends. */
  begin(): () => void {
    this.#busy += 1;
    return () => {
      this.#busy -= 1;
      this.#lastEndMs = Date.now();
      // What warmed it up must not make it shrink in the moment in which its owner comes.
      if (this.#mayTrim()) this.#wait(IDLE_MS);
    };
  }

  /** One timer per pause, not per request: it waits on when there was work meanwhile. */
  #wait(delayMs: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      const restMs = this.#lastEndMs + IDLE_MS - Date.now();
      if (this.#busy > 0) return;
      if (restMs > 0) this.#wait(restMs);
      else this.#shrink();
    }, delayMs).unref();
  }
}
