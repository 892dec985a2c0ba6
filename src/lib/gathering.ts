/** Holds keys back until none has come for a while, then lets all of them go at once. */
export interface GatheringOptions {
  quietMs: number;
  /** Where keys never stop coming, the first of them waits no longer than this. */
  busyMaxMs: number;
  release(key: string): void;
}

export class Gathering {
  readonly #options: GatheringOptions;
  #keys = new Set<string>();
  #firstAtMs = 0;
  #lastAtMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: GatheringOptions) {
    this.#options = options;
  }

  add(key: string): void {
    if (this.#stopped) return;
    this.#lastAtMs = performance.now();
    if (this.#keys.size === 0) {
      this.#firstAtMs = this.#lastAtMs;
      this.#wait(Math.min(this.#options.quietMs, this.#options.busyMaxMs));
    }
    this.#keys.add(key);
  }

  /** What is held back is forgotten. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#keys.clear();
  }

  /** One timer for all of them: it waits on when more have come meanwhile. */
  #wait(delayMs: number): void {
    this.#timer = setTimeout(() => this.#look(), delayMs);
  }

  #look(): void {
    const { quietMs, busyMaxMs, release } = this.#options;
    const restMs = Math.min(this.#lastAtMs + quietMs, this.#firstAtMs + busyMaxMs) - performance.now();
    if (restMs > 0) {
      this.#wait(Math.ceil(restMs));
      return;
    }
    const keys = this.#keys;
    this.#keys = new Set();
    for (const key of keys) release(key);
  }
}
