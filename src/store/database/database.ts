/** The store's interface to a database, with two implementations: SQLite in the data folder and PostgreSQL. */
import { CompiledQuery, type Kysely } from "kysely";
import type { Soon } from "../../lib/soon.ts";
import type { Tables } from "./schema.ts";

export type Dialect = "sqlite" | "postgres";
export type Queries = Kysely<Tables>;

/**
 * Notification of a committed change. It names the changed thing so that listeners read it again; it carries no data.
 */
export interface Change {
  topic: string;
  key: string;
  /** What listeners may know without reading. No part of a change contains a space. */
  about?: string;
}

/** Topic of changes to resources; the key is `kind/uid`. */
export const RESOURCE_TOPIC = "resource";

export interface Transaction {
  queries: Queries;
  /** Sends the change to every listener of every process once this transaction is durable. */
  announce(change: Change): void;
  /**
   * Runs `then` in this process once this transaction is durable, before listeners hear of it. `then` must not throw.
   */
  afterCommit(then: () => void): void;
  /** Defers `work` to the end of the transaction, where it runs once for all writers that share the commit. */
  share<Part>(work: SharedWork<Part>, part: Part): void;
}

export type SharedWork<Part> = (queries: Queries, parts: Part[]) => Promise<void>;

export interface Database {
  dialect: Dialect;
  /** Reads see the last committed state. */
  read: Queries;
  /**
   * Runs one long read on a consistent snapshot without delaying requests: on SQLite it runs on a thread of its own.
   * For reports; requests that need an answer at once use `read`.
   */
  report<Row>(query: CompiledQuery<unknown>): Promise<Row[]>;
  /**
   * Runs `work` in a transaction and returns when its effect is durable. `work` must only run queries: several writers
   * may share one commit, a slow one would delay the others, and `work` may be run again from the start.
   */
  write<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Runs `work` while no other process runs anything under the same name. */
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
 * Synchronous execution for SQLite: runs a fixed text without the query builder, which would cost about six event-loop
 * turns. Keyed by the query builder that shares the connection, so callers need not know about it.
 */
const shortcuts = new WeakMap<Queries, (text: string, values: readonly unknown[]) => Answer<unknown>>();
export const setShortcut = shortcuts.set.bind(shortcuts);

/**
 * A fixed SQL text with `?` for its values, for the few queries that every request runs. Nothing is built or compiled,
 * and SQLite returns the result without an event-loop turn. Everything else uses the query builder.
 */
export interface FixedQuery<Row> {
  all(queries: Queries, dialect: Dialect, values: readonly unknown[]): Soon<Row[]>;
  first(queries: Queries, dialect: Dialect, values: readonly unknown[]): Soon<Row | undefined>;
  /** Returns the number of changed rows. */
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

/** The work that one writer deferred to the end of its transaction with `share`. */
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
