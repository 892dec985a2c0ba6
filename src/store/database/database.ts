/**
 * What the store needs of a database, with two implementations: SQLite in the data folder and PostgreSQL.
 */
import { CompiledQuery, type Kysely } from "kysely";
import type { Soon } from "../../lib/soon.ts";
import type { Tables } from "./schema.ts";

export type Dialect = "sqlite" | "postgres";
export type Queries = Kysely<Tables>;

/** News of a committed change: enough to know what to look at again, never the change itself. */
export interface Change {
  topic: string;
  key: string;
}

/** Topic of changes to resources; the key is `kind/uid`. */
export const RESOURCE_TOPIC = "resource";

export interface Transaction {
  queries: Queries;
  /** Told to every listener of every process once this transaction is durable. */
  announce(change: Change): void;
  /** Runs in this process once this transaction is durable, before anybody is told. Must not fail. */
  afterCommit(then: () => void): void;
  /** Work at the end of the transaction, done once for all writers that share the commit. */
  share<Part>(work: SharedWork<Part>, part: Part): void;
}

export type SharedWork<Part> = (queries: Queries, parts: Part[]) => Promise<void>;

export interface Database {
  dialect: Dialect;
  /** Reads see the last committed state. */
  read: Queries;
  /**
   * One long read, from one state, that holds nobody up: on SQLite it runs on a thread of its own. For reports; what a
   * request needs at once is read with `read`.
   */
  report<Row>(query: CompiledQuery<unknown>): Promise<Row[]>;
  /**
   * Runs `work` in a transaction and returns when its effect is durable. `work` does nothing but queries: several
   * writers may share one commit, a slow one would hold up the others, and it may be run again from the start.
   */
  write<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Runs `work` while no other process does anything under the same name. */
  exclusively<T>(name: string, work: (queries: Queries) => Promise<T>): Promise<T>;
  onChange(listener: (change: Change) => void): () => void;
  ping(): Promise<void>;
  close(): Promise<void>;
}

export interface Answer<Row> {
  rows: Row[];
  changes: number;
}

/**
 * A database that answers at once runs a fixed text without the query builder's half a dozen turns of waiting. It is
 * kept by the builder whose connection it shares, so that callers need not know.
 */
const shortcuts = new WeakMap<Queries, (text: string, values: readonly unknown[]) => Answer<unknown>>();
export const setShortcut = shortcuts.set.bind(shortcuts);

/**
 * A fixed text with `?` for its values, for the few queries that every request runs: nothing is built or compiled, and
 * what it finds is there at once where the database answers at once. Everything else uses the query builder.
 */
export interface FixedQuery<Row> {
  all(queries: Queries, dialect: Dialect, values: readonly unknown[]): Soon<Row[]>;
  first(queries: Queries, dialect: Dialect, values: readonly unknown[]): Soon<Row | undefined>;
  /** How many rows it changed. */
  run(queries: Queries, dialect: Dialect, values: readonly unknown[]): Soon<number>;
}

export function fixedQuery<Row = never>(texts: string | Record<Dialect, string>): FixedQuery<Row> {
  const { sqlite, postgres } = typeof texts === "string" ? { sqlite: texts, postgres: texts } : texts;
  let n = 0;
  const byDialect = { sqlite, postgres: postgres.replaceAll("?", () => `$${++n}`) };
  const execute = <T>(
    queries: Queries,
    dialect: Dialect,
    values: readonly unknown[],
    take: (answer: Answer<Row>) => T,
  ): Soon<T> => {
    const shortcut = shortcuts.get(queries);
    if (shortcut) return take(shortcut(byDialect[dialect], values) as Answer<Row>);
    return queries
      .executeQuery<Row>(CompiledQuery.raw(byDialect[dialect], [...values]))
      .then(({ rows, numAffectedRows }) => take({ rows, changes: Number(numAffectedRows ?? 0) }));
  };
  return {
    all: (queries, dialect, values) => execute(queries, dialect, values, (answer) => answer.rows),
    first: (queries, dialect, values) => execute(queries, dialect, values, (answer) => answer.rows[0]),
    run: (queries, dialect, values) => execute(queries, dialect, values, (answer) => answer.changes),
  };
}

/** What one writer left to the end of its transaction. */
export type Shares = { work: SharedWork<never>; part: unknown }[];

export async function finishShares(queries: Queries, shares: Shares): Promise<void> {
  const parts = new Map<SharedWork<never>, unknown[]>();
  for (const { work, part } of shares) {
    const known = parts.get(work);
    if (known) known.push(part);
    else parts.set(work, [part]);
  }
  for (const [work, all] of parts) await work(queries, all as never[]);
}
