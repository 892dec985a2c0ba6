/**
 * Fills a database from a backup in one transaction: all of it or nothing. The tables are created as they were when the
 * backup was written; the migrations added since then bring them up to date.
 */
import { sql } from "kysely";
import { PlatformError } from "../../contract/errors.ts";
import type { Database, Queries } from "../database/database.ts";
import {
  appliedMigrations,
  MIGRATIONS,
  migrateWithin,
  ownTables,
  refuseForeign,
} from "../database/migrations/index.ts";
import type { BackupEnd, BackupReader, BackupValue } from "./format.ts";
import { DERIVED } from "./portable-tables.ts";

export interface RestoreOptions {
  /** Replaces existing data. */
  force: boolean;
  nowMs: number;
}

/** Values per INSERT statement; SQLite's limit is 32,766. */
const VALUES_MAX = 30_000;
const BATCH_ROWS_MAX = 500;

export async function restoreBackup(
  database: Database,
  backup: BackupReader,
  { force, nowMs }: RestoreOptions,
): Promise<BackupEnd["rows"]> {
  refuseForeign(backup.manifest.migrations, MIGRATIONS);
  return database.exclusively("migrations", async (queries) => {
    await clear(database, queries, force);
    const then = MIGRATIONS.slice(0, backup.manifest.migrations.length);
    await migrateWithin(queries, database.dialect, nowMs, then);
    const rows = await load(database, queries, backup);
    if (database.dialect === "postgres") await continueIdentities(queries);
    await migrateWithin(queries, database.dialect, nowMs, MIGRATIONS);
    return rows;
  });
}

/**
 * Refuses while servers are connected: they would keep serving cached rows and write into the tables being replaced.
 */
export async function refuseBusyPostgres(url: string): Promise<void> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: url, application_name: "berth-restore" });
  await client.connect();
  try {
    const { rows } = await client.query<{ n: number }>(
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND application_name IN ('berth', 'berth-listen')",
    );
    const n = rows[0]?.n ?? 0;
    if (n > 0)
      throw new PlatformError("conflict", `Servers are using this database (${n} connections). Stop them all first.`);
  } finally {
    await client.end();
  }
}

/** Drops Berth's own tables and no others: the database may be shared with other programs. */
async function clear(database: Database, queries: Queries, force: boolean): Promise<void> {
  const present = (await columnsOf(database, queries)).keys().filter((table) => ownTables(MIGRATIONS).has(table));
  const tables = [...present];
  if (!tables.includes("migrations")) return;
  // A newer Berth may have made tables that this version does not know and would not drop.
  refuseForeign(await appliedMigrations(queries), MIGRATIONS);
  if (!force && (await hasPeople(queries, tables))) {
    throw new PlatformError(
      "conflict",
      "The target is not empty. Restore into a new data folder or database, or replace everything in this one with --force.",
    );
  }
  for (const table of tables) await sql`DROP TABLE ${sql.table(table)}`.execute(queries);
}

/** True when the platform was started before: the first start creates an admin. */
async function hasPeople(queries: Queries, tables: readonly string[]): Promise<boolean> {
  if (!tables.includes("users")) return false;
  return (await queries.selectFrom("users").select("sub").limit(1).executeTakeFirst()) !== undefined;
}

async function load(database: Database, queries: Queries, backup: BackupReader): Promise<BackupEnd["rows"]> {
  const there = await columnsOf(database, queries);
  const columnsByTable = new Map(
    backup.manifest.tables.map(({ name, columns }) => [name, checkColumns(name, columns, there)]),
  );
  // Migrations insert initial rows; the rows of the backup replace them.
  for (const name of columnsByTable.keys()) await sql`DELETE FROM ${sql.table(name)}`.execute(queries);
  let table = "";
  let batch: Record<string, BackupValue>[] = [];
  const flush = async (): Promise<void> => {
    if (batch.length > 0) await insert(database, queries, table, batch);
    batch = [];
  };
  const rows = backup.rows();
  for (;;) {
    const next = await rows.next();
    if (next.done) {
      await flush();
      return next.value.rows;
    }
    const columns = columnsByTable.get(next.value.table);
    if (!columns || columns.length !== next.value.row.length)
      throw unfit(next.value.table, "has rows of another shape");
    const full = batch.length >= Math.min(BATCH_ROWS_MAX, Math.floor(VALUES_MAX / (columns.length + 2)));
    if (next.value.table !== table || full) await flush();
    table = next.value.table;
    batch.push(Object.fromEntries(columns.map((column, index) => [column, next.value.row[index] ?? null])));
  }
}

/** Table and column names come from the file, so only names that exist in the database are accepted. */
function checkColumns(
  table: string,
  columns: readonly string[],
  there: ReadonlyMap<string, ReadonlySet<string>>,
): readonly string[] {
  const known = there.get(table);
  if (!known || !ownTables(MIGRATIONS).has(table)) throw unfit(table, "is not known");
  const odd = columns.find((column) => !known.has(column));
  if (odd !== undefined) throw unfit(table, `has no column '${odd}' here`);
  return columns;
}

async function insert(
  { dialect }: Database,
  queries: Queries,
  table: string,
  batch: readonly Record<string, BackupValue>[],
): Promise<void> {
  const derived = DERIVED[table];
  const rows = derived ? batch.map((row) => ({ ...row, ...derived.fill(row, dialect) })) : batch;
  const columns = Object.keys(rows[0] ?? {});
  const values = rows.map(
    (row) => sql`(${sql.join(columns.map((column) => (row as Record<string, unknown>)[column]))})`,
  );
  const names = sql.join(columns.map((column) => sql.ref(column)));
  await sql`INSERT INTO ${sql.table(table)} (${names}) VALUES ${sql.join(values)}`.execute(queries);
  await derived?.index?.(queries, dialect, batch);
}

async function columnsOf({ dialect }: Database, queries: Queries): Promise<Map<string, Set<string>>> {
  const { rows } =
    dialect === "sqlite"
      ? await sql<{
          t: string;
          c: string;
        }>`SELECT m.name AS t, p.name AS c FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table'`.execute(
          queries,
        )
      : await sql<{
          t: string;
          c: string;
        }>`SELECT table_name AS t, column_name AS c FROM information_schema.columns WHERE table_schema = current_schema()`.execute(
          queries,
        );
  const tables = new Map<string, Set<string>>();
  for (const { t, c } of rows) tables.set(t, (tables.get(t) ?? new Set()).add(c));
  return tables;
}

/** Moves each identity sequence past the highest restored number. */
async function continueIdentities(queries: Queries): Promise<void> {
  const { rows } = await sql<{ t: string; c: string }>`
    SELECT table_name AS t, column_name AS c FROM information_schema.columns
    WHERE table_schema = current_schema() AND is_identity = 'YES'`.execute(queries);
  for (const { t, c } of rows.filter((row) => ownTables(MIGRATIONS).has(row.t))) {
    await sql`SELECT setval(pg_get_serial_sequence(${t}, ${c}), COALESCE(MAX(${sql.ref(c)}), 0) + 1, false) FROM ${sql.table(t)}`.execute(
      queries,
    );
  }
}

const unfit = (table: string, why: string): PlatformError =>
  new PlatformError(
    "unprocessable",
    `The backup does not fit this Berth: table '${table.slice(0, 64)}' ${why}. Nothing was changed.`,
  );
