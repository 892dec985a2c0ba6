/**
 * Reads the whole database as it was at one moment, while servers go on writing. On SQLite a second process reads the
 * file: a transaction of a read-only connection sees one state of the write-ahead log until it ends.
 */
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { PlatformError } from "../../contract/errors.ts";
import type { Dialect } from "../database/database.ts";
import type { AppliedMigration } from "../database/migrations/index.ts";
import type { BackupValue } from "./format.ts";

export interface DatabaseSnapshot {
  dialect: Dialect;
  /** Applied migrations in order; empty when the database has never been used. */
  migrations: AppliedMigration[];
  /** The tables present, each with its columns in order. */
  tables: ReadonlyMap<string, readonly string[]>;
  rows(table: string, columns: readonly string[]): AsyncGenerator<BackupValue[]>;
  /** The database server's clock. */
  nowMs(): Promise<number>;
  close(): Promise<void>;
}

const APPLIED = "SELECT id, name, checksum FROM migrations ORDER BY id";
const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

export function openSqliteSnapshot(file: string): DatabaseSnapshot {
  if (!existsSync(file)) throw new PlatformError("not_found", `There is no database at ${file}.`);
  const database = new DatabaseSync(file, { readOnly: true });
  database.exec("PRAGMA busy_timeout = 5000; BEGIN");
  const names = database
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    .all() as { name: string }[];
  const columns = database.prepare("SELECT name FROM pragma_table_info(?) ORDER BY cid");
  const tables = new Map(
    names.map(({ name }) => [name, columns.all(name).map((column) => String((column as { name: string }).name))]),
  );
  return {
    dialect: "sqlite",
    tables,
    migrations: tables.has("migrations") ? (database.prepare(APPLIED).all() as unknown as AppliedMigration[]) : [],
    async *rows(table, chosen) {
      const statement = database.prepare(`SELECT ${chosen.map(quote).join(", ")} FROM ${quote(table)}`);
      statement.setReadBigInts(true);
      statement.setReturnArrays(true);
      yield* statement.iterate() as unknown as Iterable<BackupValue[]>;
    },
    nowMs: async () => Date.now(),
    async close() {
      database.close();
    },
  };
}

/** Rows per fetch. Small, because each row may be large. */
const FETCH_ROWS = 500;
const INTEGER_OIDS = new Set([20, 21, 23]);

export async function openPostgresSnapshot(url: string): Promise<DatabaseSnapshot> {
  const { default: pg } = await import("pg");
  const types = {
    getTypeParser: ((oid: number, format?: "text") =>
      INTEGER_OIDS.has(oid) ? BigInt : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
  };
  const client = new pg.Client({ connectionString: url, application_name: "berth-backup", types });
  const lost = Promise.withResolvers<never>();
  lost.promise.catch(() => {}); // the next query reports the error
  client.on("error", lost.reject);
  await client.connect().catch((error: unknown) => {
    throw new PlatformError("unavailable", `PostgreSQL does not answer at DATABASE_URL: ${(error as Error).message}`, {
      cause: error,
    });
  });
  const query = async (text: string): Promise<BackupValue[][]> =>
    (await Promise.race([client.query({ text, rowMode: "array" }), lost.promise])).rows as BackupValue[][];
  await query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  const tables = new Map<string, string[]>();
  const columns = await query(
    `SELECT c.table_name, c.column_name FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
     WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE' ORDER BY c.table_name, c.ordinal_position`,
  );
  for (const [table, column] of columns)
    tables.set(String(table), [...(tables.get(String(table)) ?? []), String(column)]);
  const applied = tables.has("migrations") ? await query(APPLIED) : [];
  return {
    dialect: "postgres",
    tables,
    migrations: applied.map(([id, name, checksum]) => ({
      id: Number(id),
      name: String(name),
      checksum: String(checksum),
    })),
    async *rows(table, chosen) {
      await query(`DECLARE backup NO SCROLL CURSOR FOR SELECT ${chosen.map(quote).join(", ")} FROM ${quote(table)}`);
      for (;;) {
        const batch = await query(`FETCH ${FETCH_ROWS} FROM backup`);
        yield* batch;
        if (batch.length < FETCH_ROWS) break;
      }
      await query("CLOSE backup");
    },
    nowMs: async () => Number((await query("SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint"))[0]?.[0]),
    close: () => client.end(),
  };
}
