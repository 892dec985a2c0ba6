/** Writers of one moment share a transaction: one fsync for all of them, and each is told when it is done. */
import type { DatabaseSync } from "node:sqlite";
import { diskFull } from "../../contract/errors.ts";
import { isDiskFull } from "../../lib/disk/disk-full.ts";
import { finishShares, type Queries, type Shares } from "./database.ts";

/** A batch is bounded so that the first writer in it does not wait for an endless stream of others. */
const BATCH_MAX = 256;
/**
 * A server that a hundred clients turn to at once meets them one or two in a turn of the event loop, and a commit for
 * each would take longer than all of their work: as long as more come they are gathered, for so long at most.
 */
const GATHER_MAX_MS = 5;
/** Turns without a newcomer after which no more are expected. One that comes alone, after others that did, waits for one. */
const PATIENCE_TURNS = 3;

interface Pending {
  run(queries: Queries): Promise<void>;
  commit(): void;
  fail(error: unknown): void;
  /** It cannot be run again from the start. */
  once: boolean;
  shares(): Shares;
}

export interface Write<T> {
  once: boolean;
  work(queries: Queries): Promise<T>;
  /** What `work` left to the end of the transaction. */
  shares(): Shares;
  /** The transaction is on the disk; the writer is told next. */
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
  /** Writers that shared the last commit. */
  #lastCount = 1;

  /** `makeRoom` frees some of a full disk; false when it cannot. */
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
   * Nearly every writer succeeds, so the batch is first tried as one piece: a savepoint around each would make the
   * search index write out its part every time. When one fails after it has written, all is undone and run again, each
   * in its savepoint.
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

  /** Null when all has to be run again. */
  async #tryWhole(batch: Pending[]): Promise<Failures | null> {
    const failures: Failures = new Map();
    this.#writer.exec("BEGIN IMMEDIATE");
    for (const item of batch) {
      const before = this.#written.statements;
      try {
        await item.run(this.#queries);
      } catch (error) {
        if (isDiskFull(error)) throw error; // the whole transaction is gone with it
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

/** Counts the statements that may have changed something. */
export interface Written {
  statements: number;
}
