/**
 * SQLite by Node's own module. One process owns the file (a lock file says which). Writers queue up and share
 * commits: each runs in a savepoint of one transaction and is told once that transaction is on the disk, so that
 * durability costs one fsync per batch instead of one per write. Reads use a second connection and never wait.
 */
import { EventEmitter } from "node:events";
import { chmodSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { Kysely, type SqliteDatabase, SqliteDialect, type SqliteStatement, sql } from "kysely";
import { type Change, type Database, type Queries, setShortcut, type Transaction } from "./database.ts";
import type { Tables } from "./schema.ts";
import { createReportThread } from "./sqlite-report.ts";

/** Prepared statements are few (each query has one text); the bound is against runaway dynamic SQL. */
const STATEMENTS_MAX = 500;
/**
 * Pages in the log before they are moved to the main file: 32 MB. By default it is 4 MB, which a few batches fill; each
 * move writes and syncs pages that the next batches change again.
 */
const LOG_PAGES = 8000;
/** A batch is bounded so that the first writer in it does not wait for an endless stream of others. */
const BATCH_MAX = 256;

interface Pending {
  run(queries: Queries): Promise<void>;
  commit(): void;
  fail(error: unknown): void;
}

export function openSqlite(file: string): Database {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const writer = open(
    file,
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = ${LOG_PAGES};`,
  );
  chmodSync(file, 0o600);
  const reader = open(file, "PRAGMA query_only = ON;");
  const write = kysely(writer);
  const read = kysely(reader);
  const news = new EventEmitter().setMaxListeners(0);
  const batcher = new Batcher(write, writer);
  const reports = createReportThread(file);
  return {
    dialect: "sqlite",
    read,
    report: (query) => reports.read(query),
    async write(work) {
      const changes: Change[] = [];
      const result = await batcher.add((queries) =>
        work({ queries, announce: (change) => changes.push(change) } satisfies Transaction),
      );
      for (const change of changes) news.emit("change", change);
      return result;
    },
    exclusively: (_name, work) => batcher.add(work),
    onChange(listener) {
      news.on("change", listener);
      return () => news.off("change", listener);
    },
    async ping() {
      await sql`SELECT 1`.execute(read);
    },
    async close() {
      await reports.stop();
      await batcher.idle();
      await read.destroy();
      await write.destroy();
    },
  };
}

class Batcher {
  #queries: Queries;
  #writer: DatabaseSync;
  #pending: Pending[] = [];
  #running: Promise<void> | null = null;

  constructor(queries: Queries, writer: DatabaseSync) {
    this.#queries = queries;
    this.#writer = writer;
  }

  add<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let result: T;
    this.#pending.push({
      run: async (queries) => {
        result = await work(queries);
      },
      commit: () => resolve(result),
      fail: reject,
    });
    this.#running ??= this.#drain();
    return promise;
  }

  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async #drain(): Promise<void> {
    // Writers of one turn of the event loop meet in one batch.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#pending.length > 0) await this.#commit(this.#pending.splice(0, BATCH_MAX));
    this.#running = null;
  }

  async #commit(batch: Pending[]): Promise<void> {
    const done: Pending[] = [];
    try {
      this.#writer.exec("BEGIN IMMEDIATE");
      for (const item of batch) {
        this.#writer.exec("SAVEPOINT item");
        try {
          await item.run(this.#queries);
          this.#writer.exec("RELEASE item");
          done.push(item);
        } catch (error) {
          this.#writer.exec("ROLLBACK TO item; RELEASE item");
          item.fail(error);
        }
      }
      this.#writer.exec("COMMIT");
    } catch (error) {
      if (this.#writer.isOpen && this.#writer.isTransaction) this.#writer.exec("ROLLBACK");
      for (const item of batch) item.fail(error);
      return;
    }
    for (const item of done) item.commit();
  }
}

function open(file: string, pragmas: string): DatabaseSync {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA busy_timeout = 5000; PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY; ${pragmas}`);
  return database;
}

function kysely(database: DatabaseSync): Queries {
  const statements = new Map<string, SqliteStatement>();
  const adapter: SqliteDatabase = {
    prepare(text) {
      let statement = statements.get(text);
      if (!statement) {
        statement = adapt(database.prepare(text));
        if (statements.size >= STATEMENTS_MAX) statements.clear();
        statements.set(text, statement);
      }
      return statement;
    },
    close: () => database.close(),
  };
  const queries = new Kysely<Tables>({ dialect: new SqliteDialect({ database: adapter }) });
  setShortcut(queries, (text, values) => {
    const statement = adapter.prepare(text);
    return statement.reader
      ? { rows: statement.all(values), changes: 0 }
      : { rows: [], changes: Number(statement.run(values).changes) };
  });
  return queries;
}

/**
 * Rows come as arrays and become objects here: the ones that the module makes itself are slow dictionaries, which every
 * later look at a column pays for.
 */
function adapt(statement: StatementSync): SqliteStatement {
  const names = statement.columns().map(({ name }) => name);
  statement.setReturnArrays(true);
  const toRow = (values: unknown[]): Record<string, unknown> => {
    const row: Record<string, unknown> = {};
    for (let at = 0; at < names.length; at += 1) row[names[at] as string] = values[at];
    return row;
  };
  return {
    reader: names.length > 0,
    all: (values) => (statement.all(...(values as SQLInputValue[])) as unknown as unknown[][]).map(toRow),
    run: (values) => statement.run(...(values as SQLInputValue[])),
    *iterate(values) {
      for (const row of statement.iterate(...(values as SQLInputValue[]))) yield toRow(row as unknown as unknown[]);
    },
  };
}
