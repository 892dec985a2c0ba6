/**
 * Gives memory back after work: a burst of requests leaves a heap several times its resting size, and most sandboxes
 * are idle most of the time. After IDLE_MS without requests the heap is shrunk, once. That drops compiled code too, so
 * a prepared sandbox without an owner is not shrunk.
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

  /** Pieces of work that have begun and not ended. */
  get busy(): number {
    return this.#busy;
  }

  /** Marks the begin of work; call the returned function at its end. */
  begin(): () => void {
    this.#busy += 1;
    return () => {
      this.#busy -= 1;
      this.#lastEndMs = Date.now();
      // The warm-up of a prepared sandbox must not cause a shrink just when its owner arrives.
      if (this.#mayTrim()) this.#wait(IDLE_MS);
    };
  }

  /** One timer per idle period, not per request: it is armed again when there was work meanwhile. */
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
