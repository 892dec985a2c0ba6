/**
 * SQLite by Node's own module. One process owns the file (a lock file says which). Writers queue up and share
 * commits: each is told once their one transaction is on the disk, so that durability costs one fsync per batch instead
 * of one per write. Reads use a second connection and never wait.
 */
import { EventEmitter } from "node:events";
import { chmodSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { Kysely, type SqliteDatabase, SqliteDialect, type SqliteStatement, sql } from "kysely";
import { type Change, type Database, type Queries, type Shares, setShortcut, type Transaction } from "./database.ts";
import type { Tables } from "./schema.ts";
import { Batcher, type Written } from "./sqlite-batcher.ts";
import { createReportThread } from "./sqlite-report.ts";

/** Prepared statements kept. Each query has one text, so they are few; the limit guards against runaway dynamic SQL. */
const STATEMENTS_MAX = 500;
/**
 * Pages in the write-ahead log before a checkpoint: 32 MB. A few batches fill the default of 4 MB, and each checkpoint
 * writes and syncs pages that the next batches change again.
 */
const LOG_PAGES = 8000;

export function openSqlite(file: string, options: { makeRoom?(): boolean } = {}): Database {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const writer = open(
    file,
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = ${LOG_PAGES};`,
  );
  chmodSync(file, 0o600);
  const reader = open(file, "PRAGMA query_only = ON;");
  const written = { statements: 0 };
  const write = kysely(writer, written);
  const read = kysely(reader, { statements: 0 });
  const news = new EventEmitter().setMaxListeners(0);
  const batcher = new Batcher(write, writer, written, options);
  const reports = createReportThread(file);
  return {
    dialect: "sqlite",
    read,
    report: (query) => reports.read(query),
    async write<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
      let changes: Change[] = [];
      let effects: (() => void)[] = [];
      let shares: Shares = [];
      const tx: Omit<Transaction, "queries"> = {
        announce: (change) => changes.push(change),
        afterCommit: (then) => effects.push(then),
        share: (work, part) => shares.push({ work, part }),
      };
      const result = await batcher.add({
        once: false,
        work: (queries) => {
          changes = [];
          effects = [];
          shares = [];
          return work({ ...tx, queries });
        },
        shares: () => shares,
        done: () => {
          for (const effect of effects) effect();
        },
      });
      for (const change of changes) news.emit("change", change);
      return result;
    },
    exclusively: (_name, work) => batcher.add({ once: true, work, shares: () => [], done: () => {} }),
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

function open(file: string, pragmas: string): DatabaseSync {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA busy_timeout = 5000; PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY; ${pragmas}`);
  return database;
}

function kysely(database: DatabaseSync, written: Written): Queries {
  const statements = new Map<string, SqliteStatement>();
  const adapter: SqliteDatabase = {
    prepare(text) {
      let statement = statements.get(text);
      if (!statement) {
        statement = adapt(database.prepare(text), /^\s*select/i.test(text) ? null : written);
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
 * Reads rows as arrays and builds the objects here: the objects that node:sqlite builds are in dictionary mode, which
 * makes every later property access slow.
 */
function adapt(statement: StatementSync, written: Written | null): SqliteStatement {
  const names = statement.columns().map(({ name }) => name);
  statement.setReturnArrays(true);
  const toRow = (values: unknown[]): Record<string, unknown> => {
    const row: Record<string, unknown> = {};
    for (let at = 0; at < names.length; at += 1) row[names[at] as string] = values[at];
    return row;
  };
  const note = (): void => {
    if (written) written.statements += 1;
  };
  return {
    reader: names.length > 0,
    all(values) {
      note();
      return (statement.all(...(values as SQLInputValue[])) as unknown as unknown[][]).map(toRow);
    },
    run(values) {
      note();
      return statement.run(...(values as SQLInputValue[]));
    },
    *iterate(values) {
      note();
      for (const row of statement.iterate(...(values as SQLInputValue[]))) yield toRow(row as unknown as unknown[]);
    },
  };
}
