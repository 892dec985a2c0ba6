/** PostgreSQL: every process connects; committed changes travel by LISTEN/NOTIFY. */
import { EventEmitter } from "node:events";
import { type CompiledQuery, Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import { PlatformError } from "../../contract/errors.ts";
import { backoffMs } from "../../lib/backoff.ts";
import { LISTENER_NAME, SEALED_CONSTRAINT } from "../sealing/postgres-names.ts";
import { type Change, type Database, finishShares, type Queries, type Shares, type Transaction } from "./database.ts";
import type { Tables } from "./schema.ts";

const CHANNEL = "berth_changes";
const CONNECTIONS_MAX = 20;
const RECONNECT_MS = 1000;
/** Retries of a transaction after a serialization failure or a deadlock. More conflicts than this mean a defect. */
const SERIALIZATION_RETRIES_MAX = 8;
const RETRYABLE = new Set(["40001", "40P01"]);

// int8 and numeric arrive as text; all of ours fit a double (times in ms, counters).
const INT8 = 20;

export async function openPostgres(url: string, onError: (error: unknown) => void): Promise<Database> {
  const types = {
    getTypeParser: ((oid: number, format?: "text") =>
      oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
  };
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS_MAX, types, application_name: "berth" });
  pool.on("error", onError);
  // The pool reports errors of idle connections only. Without this listener an error of a busy one would end the
  // process; its user sees the query fail.
  pool.on("connect", (client) => client.on("error", onError));
  const queries: Queries = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  await ready(queries);
  const news = new EventEmitter().setMaxListeners(0);
  const listener = new Listener(url, (change) => news.emit("change", change), onError);
  await listener.start();
  return {
    dialect: "postgres",
    read: queries,
    report: <Row>(query: CompiledQuery<unknown>) =>
      queries.transaction().execute(async (tx) => {
        // JIT compilation of a report takes longer than running it.
        await sql`SET LOCAL jit = off`.execute(tx);
        return (await tx.executeQuery(query)).rows as Row[];
      }),
    write: async (work) => {
      const { result, changes, effects } = await transact(queries, work);
      for (const effect of effects) effect();
      // Other processes hear of the change by NOTIFY a moment later. The writer's own process must not read a stale
      // cache.
      for (const change of changes) news.emit("change", change);
      return result;
    },
    exclusively: (name, work) =>
      queries.transaction().execute(async (tx) => {
        await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`berth:${name}`}, 0))`.execute(tx);
        return work(tx);
      }),
    onChange(handler) {
      news.on("change", handler);
      return () => news.off("change", handler);
    },
    async ping() {
      await sql`SELECT 1`.execute(queries);
    },
    async close() {
      await listener.stop();
      await queries.destroy();
    },
  };
}

async function transact<T>(
  queries: Queries,
  work: (tx: Transaction) => Promise<T>,
): Promise<{ result: T; changes: Change[]; effects: (() => void)[] }> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await queries.transaction().execute(async (tx) => {
        const changes: Change[] = [];
        const effects: (() => void)[] = [];
        const shares: Shares = [];
        const result = await work({
          queries: tx,
          announce: (change) => changes.push(change),
          afterCommit: (then) => effects.push(then),
          share: (work, part) => shares.push({ work, part }),
        });
        await finishShares(tx, shares);
        // NOTIFY inside the transaction is delivered exactly when it commits.
        if (changes.length > 0)
          await sql`SELECT pg_notify(${CHANNEL}, x) FROM unnest(${changes.map(wordsOf)}::text[]) AS x`.execute(tx);
        return { result, changes, effects };
      });
    } catch (error) {
      if (isStaleSeal(error)) throw staleSeal(error);
      if (attempt >= SERIALIZATION_RETRIES_MAX || !RETRYABLE.has((error as { code?: string }).code ?? "")) throw error;
      await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt, { baseMs: 5, maxMs: 500 })));
    }
  }
}

const wordsOf = ({ topic, key, about }: Change): string =>
  about === undefined ? `${topic} ${key}` : `${topic} ${key} ${about}`;

const CHECK_VIOLATION = "23514";

/** This server sealed a value with a key that has been replaced meanwhile; see sealing/other-servers.ts. */
const isStaleSeal = (error: unknown): boolean => {
  const { code, constraint = "" } = error as { code?: string; constraint?: string };
  return code === CHECK_VIOLATION && constraint.startsWith(SEALED_CONSTRAINT);
};

const staleSeal = (cause: unknown): PlatformError =>
  new PlatformError(
    "unavailable",
    "The key that seals secrets was replaced and this server does not use the new one yet. Try again in a moment; if it stays, restart this server with the new key.",
    { cause },
  );

async function ready(queries: Queries): Promise<void> {
  const version = await sql<{ n: string }>`SELECT current_setting('server_version_num') AS n`
    .execute(queries)
    .catch((error: unknown) => {
      throw new PlatformError(
        "unavailable",
        `PostgreSQL does not answer at DATABASE_URL: ${(error as Error).message}`,
        { cause: error },
      );
    });
  const number = Number(version.rows[0]?.n);
  if (number < 150000)
    throw new PlatformError(
      "unavailable",
      `PostgreSQL 15 or newer is needed; this one is ${Math.floor(number / 10000)}.`,
    );
}

/** Keeps one connection listening. After a lost connection it reconnects and tells all listeners to read again. */
class Listener {
  #url: string;
  #emit: (change: Change) => void;
  #onError: (error: unknown) => void;
  #client: pg.Client | null = null;
  #stopped = false;
  #retry: NodeJS.Timeout | null = null;

  constructor(url: string, emit: (change: Change) => void, onError: (error: unknown) => void) {
    this.#url = url;
    this.#emit = emit;
    this.#onError = onError;
  }

  async start(): Promise<void> {
    const client = new pg.Client({ connectionString: this.#url, application_name: LISTENER_NAME });
    client.on("notification", ({ payload = "" }) => {
      const [topic = "", key = "", about] = payload.split(" ", 3);
      this.#emit({ topic, key, ...(about === undefined ? {} : { about }) });
    });
    client.on("error", (error) => this.#lost(client, error));
    client.on("end", () => this.#lost(client, null));
    await client.connect();
    await client.query(`LISTEN ${CHANNEL}`);
    this.#client = client;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#retry) clearTimeout(this.#retry);
    await this.#client?.end();
  }

  #lost(client: pg.Client, error: unknown): void {
    if (this.#stopped || client !== this.#client) return;
    this.#client = null;
    if (error) this.#onError(error);
    void client.end().catch(() => {}); // already broken: nothing is left to close
    this.#reconnect();
  }

  #reconnect(): void {
    if (this.#stopped) return;
    this.#retry = setTimeout(() => {
      this.start().then(
        () => this.#emit({ topic: "resync", key: "" }),
        (error: unknown) => {
          this.#onError(error);
          this.#reconnect();
        },
      );
    }, RECONNECT_MS);
  }
}
