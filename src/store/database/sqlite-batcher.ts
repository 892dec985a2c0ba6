/** Concurrent writers share a transaction: one fsync for all, and each writer is told when it is durable. */
import type { DatabaseSync } from "node:sqlite";
import { diskFull } from "../../contract/errors.ts";
import { isDiskFull } from "../../lib/disk/disk-full.ts";
import { finishShares, type Queries, type Shares } from "./database.ts";

/** Writers per batch. The limit keeps the first writer from waiting for an endless stream of others. */
const BATCH_MAX = 256;
/**
 * Longest time to collect writers for one commit. With a hundred clients, one or two requests arrive per event-loop
 * turn, and a commit for each would take longer than all of their work.
 */
const GATHER_MAX_MS = 5;
/**
 * Commit after this many event-loop turns without a new writer. A single writer commits after one turn, unless the last
 * commit was shared.
 */
const PATIENCE_TURNS = 3;

interface Pending {
  run(queries: Queries): Promise<void>;
  commit(): void;
  fail(error: unknown): void;
  /** `run` must not be repeated from the start. */
  once: boolean;
  shares(): Shares;
}

export interface Write<T> {
  once: boolean;
  work(queries: Queries): Promise<T>;
  /** The work that `work` deferred to the end of the transaction. */
  shares(): Shares;
  /** Called when the transaction is durable, before the writer's promise resolves. */
  done(): void;
}

export class Batcher {
  readonly #nowMs: () => number;
  #queries: Queries;
  #writer: DatabaseSync;
  #written: Written;
  readonly #makeRoom: () => boolean;
  #pending: Pending[] = [];
  #running: Promise<void> | null = null;
  /** Number of writers in the last commit. */
  #lastCount = 1;

  /** `makeRoom` frees reserved space on a full disk; it returns false when it cannot. */
  constructor(
    queries: Queries,
    writer: DatabaseSync,
    written: Written,
    { makeRoom = () => false, nowMs = () => performance.now() }: { makeRoom?(): boolean; nowMs?(): number } = {},
  ) {
    this.#nowMs = nowMs;
    this.#makeRoom = makeRoom;
    this.#queries = queries;
    this.#writer = writer;
    this.#written = written;
  }

  add<T>({ work, shares, done, once }: Write<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let result: T;
    this.#pending.push({
      run: async (queries) => {
        result = await work(queries);
      },
      commit: () => {
        done();
        resolve(result);
      },
      fail: reject,
      once,
      shares,
    });
    this.#running ??= this.#drain();
    return promise;
  }

  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async #drain(): Promise<void> {
    while (this.#pending.length > 0) {
      await this.#gather();
      const batch = this.#pending.splice(0, BATCH_MAX);
      this.#lastCount = batch.length;
      await this.#commit(batch);
    }
    this.#running = null;
  }

  async #gather(): Promise<void> {
    const untilMs = this.#nowMs() + GATHER_MAX_MS;
    for (let idle = 0; this.#pending.length < BATCH_MAX; ) {
      const known = this.#pending.length;
      await new Promise((resolve) => setImmediate(resolve));
      idle = this.#pending.length > known ? 0 : idle + 1;
      const alone = this.#pending.length === 1 && this.#lastCount === 1;
      if (idle >= (alone ? 1 : PATIENCE_TURNS) || this.#nowMs() >= untilMs) return;
    }
  }

  /**
   * Nearly every writer succeeds, so the batch first runs without savepoints: each savepoint would make the search
   * index flush its pending part. When a writer fails after it has written, the batch is rolled back and run again with
   * a savepoint per writer.
   */
  async #commit(batch: Pending[]): Promise<void> {
    const isRepeatable = !batch.some(({ once }) => once);
    try {
      const outcome = (isRepeatable ? await this.#tryWhole(batch) : null) ?? (await this.#each(batch));
      for (const item of batch) {
        const failure = outcome.get(item);
        if (failure) item.fail(failure.error);
        else item.commit();
      }
    } catch (error) {
      this.#rollBack();
      const isFull = isDiskFull(error);
      if (isFull && isRepeatable && this.#makeRoom()) return this.#commit(batch);
      const told = isFull ? diskFull("The database cannot be written: the disk is full.", error) : error;
      for (const item of batch) item.fail(told);
    }
  }

  /** Returns null when the batch has to be run again with savepoints. */
  async #tryWhole(batch: Pending[]): Promise<Failures | null> {
    const failures: Failures = new Map();
    this.#writer.exec("BEGIN IMMEDIATE");
    for (const item of batch) {
      const before = this.#written.statements;
      try {
        await item.run(this.#queries);
      } catch (error) {
        if (isDiskFull(error)) throw error; // SQLite has rolled back the whole transaction
        failures.set(item, { error });
        if (this.#written.statements === before) continue;
        this.#rollBack();
        return batch.length === 1 ? failures : null;
      }
    }
    return this.#finish(batch, failures);
  }

  async #each(batch: Pending[]): Promise<Failures> {
    const failures: Failures = new Map();
    this.#writer.exec("BEGIN IMMEDIATE");
    for (const item of batch) {
      this.#writer.exec("SAVEPOINT item");
      try {
        await item.run(this.#queries);
        this.#writer.exec("RELEASE item");
      } catch (error) {
        if (isDiskFull(error)) throw error;
        this.#writer.exec("ROLLBACK TO item; RELEASE item");
        failures.set(item, { error });
      }
    }
    return this.#finish(batch, failures);
  }

  async #finish(batch: Pending[], failures: Failures): Promise<Failures> {
    const shares: Shares = [];
    for (const item of batch) if (!failures.has(item)) shares.push(...item.shares());
    if (shares.length > 0) await finishShares(this.#queries, shares);
    this.#writer.exec("COMMIT");
    return failures;
  }

  #rollBack(): void {
    if (this.#writer.isOpen && this.#writer.isTransaction) this.#writer.exec("ROLLBACK");
  }
}

type Failures = Map<Pending, { error: unknown }>;

/** Counts the statements that may have written. */
export interface Written {
  statements: number;
}
