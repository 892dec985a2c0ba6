/**
 * Workloads started in advance. An entry has the image, grade and network class of its key and nothing of an owner.
 * Requested keys stay stocked; the least recently requested are dropped.
 *
 * Refilling is background work: one launch at a time, so that a create that missed the pool does not wait behind it.
 */
export interface PoolOptions<T> {
  size: number;
  make: (key: string) => Promise<T>;
  discard: (entry: T) => Promise<void>;
  /** Called for every failed refill. It is retried after RETRY_MS, or when the key is next taken. */
  onError: (error: unknown) => void;
}

/** Most keys in stock: the base image in each network class, and two for images in use. */
const KEYS_MAX = 4;
/**
 * A refill starts after this long without requests: a launch costs 50 ms of processor time, which the owner of the
 * entry just taken needs. While requests never pause, it starts after BUSY_MAX_MS.
 */
const QUIET_MS = 300;
const BUSY_MAX_MS = 1_000;
/** Causes of a failed refill, such as a busy machine, pass. */
const RETRY_MS = 5_000;

export class Pool<T> {
  readonly #options: PoolOptions<T>;
  /** Entries by key, the most recently used key last. */
  readonly #stock = new Map<string, T[]>();
  #filling: Promise<void> | null = null;
  /** The entry that is being made, or was made last. */
  #adding: { key: string; added: Promise<void> } | null = null;
  #retry: NodeJS.Timeout | undefined;
  #askedAtMs = 0;
  /** Time of the first request after a pause. */
  #busySinceMs = 0;
  #stopped = false;

  constructor(options: PoolOptions<T>) {
    this.#options = options;
  }

  /** An entry, or undefined when none is ready. Either way the key counts as used and is stocked. */
  take(key: string): T | undefined {
    const entry = this.#stock.get(key)?.shift();
    const nowMs = Date.now();
    if (nowMs - this.#askedAtMs >= QUIET_MS) this.#busySinceMs = nowMs;
    this.#askedAtMs = nowMs;
    this.want(key);
    return entry;
  }

  want(key: string): void {
    if (this.#stopped || this.#options.size === 0) return;
    const entries = this.#stock.get(key) ?? [];
    this.#stock.delete(key);
    this.#stock.set(key, entries);
    this.#refill();
  }

  /** Drops a key and its entries; a later request stocks the key again. */
  async forget(key: string): Promise<void> {
    const entries = this.#stock.get(key) ?? [];
    this.#stock.delete(key);
    await Promise.all(entries.map((entry) => this.#options.discard(entry)));
    // One that is being made is discarded when it is there.
    if (this.#adding?.key === key) await this.#adding.added.catch(() => {}); // told by the refill
  }

  #refill(): void {
    this.#filling ??= this.#fill().then((full) => {
      this.#filling = null;
      // An entry may have been taken after the last check.
      if (full && this.#short() !== undefined) this.#refill();
    });
  }

  /** Resolves when every key in use is fully stocked, or a refill has failed. */
  async filled(): Promise<void> {
    while (this.#filling) await this.#filling;
  }

  async drain(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#retry);
    await this.#filling;
    const entries = [...this.#stock.values()].flat();
    this.#stock.clear();
    await Promise.all(entries.map((entry) => this.#options.discard(entry)));
  }

  /** True when all keys are stocked, false when stopped or failed. */
  async #fill(): Promise<boolean> {
    try {
      for (let key = this.#short(); key !== undefined; key = this.#short()) {
        await this.#quiet();
        if (this.#stopped) return false;
        if (!this.#stock.has(key)) continue;
        const added = this.#add(key);
        this.#adding = { key, added };
        await added;
        await this.#forgetOldest();
      }
      return true;
    } catch (error) {
      this.#options.onError(error);
      clearTimeout(this.#retry);
      if (!this.#stopped) this.#retry = setTimeout(() => this.#refill(), RETRY_MS).unref();
      return false;
    }
  }

  async #add(key: string): Promise<void> {
    const entry = await this.#options.make(key);
    const entries = this.#stock.get(key);
    if (entries) entries.push(entry);
    else await this.#options.discard(entry);
  }

  async #quiet(): Promise<void> {
    for (;;) {
      const waitMs = Math.min(this.#askedAtMs + QUIET_MS, this.#busySinceMs + BUSY_MAX_MS) - Date.now();
      if (waitMs <= 0 || this.#stopped) return;
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }

  /** The most recently used key that lacks entries. */
  #short(): string | undefined {
    return [...this.#stock].reverse().find(([, entries]) => entries.length < this.#options.size)?.[0];
  }

  async #forgetOldest(): Promise<void> {
    while (this.#stock.size > KEYS_MAX) {
      const [oldest] = this.#stock;
      if (!oldest) return;
      this.#stock.delete(oldest[0]);
      for (const entry of oldest[1]) await this.#options.discard(entry);
    }
  }
}
