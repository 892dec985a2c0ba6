/** Debounces keys: holds them back until none has been added for `quietMs`, then releases all of them at once. */
export interface GatheringOptions {
  quietMs: number;
  /** Longest time that the first key waits when keys never stop coming. */
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

  /** Drops the keys that are held back. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#keys.clear();
  }

  /** One timer for all keys: it is started again when more keys have come meanwhile. */
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
