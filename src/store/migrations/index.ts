/** Forward-only migrations. One that has run is never edited: its checksum is stored and compared at every start. */
import { createHash } from "node:crypto";
import { sql } from "kysely";
import { PlatformError } from "../../contract/errors.ts";
import type { Database, Dialect, Queries } from "../database.ts";
import { foundation } from "./0001-foundation.ts";
import { links } from "./0002-links.ts";
import { executions } from "./0003-executions.ts";
import { shares } from "./0004-shares.ts";

export interface Migration {
  id: number;
  name: string;
  both: readonly string[];
  sqlite?: readonly string[];
  postgres?: readonly string[];
}

export const MIGRATIONS: readonly Migration[] = [foundation, links, executions, shares];

const TYPES: Record<Dialect, Record<string, string>> = {
  sqlite: { text: "TEXT", rowid: "id INTEGER PRIMARY KEY,", unique_or_primary: "UNIQUE", grams: "" },
  postgres: {
    text: 'TEXT COLLATE "C"',
    rowid: "id BIGINT,",
    unique_or_primary: "PRIMARY KEY",
    grams: ", grams TEXT[] NOT NULL DEFAULT '{}'",
  },
};

export async function migrate(
  database: Database,
  nowMs: number,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  await database.exclusively("migrations", async (queries) => {
    await sql`CREATE TABLE IF NOT EXISTS migrations (id INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)`.execute(
      queries,
    );
    const applied = (
      await sql<{
        id: number;
        name: string;
        checksum: string;
      }>`SELECT id, name, checksum FROM migrations ORDER BY id`.execute(queries)
    ).rows;
    refuseForeign(applied, migrations);
    for (const migration of migrations.slice(applied.length)) await apply(queries, database.dialect, migration, nowMs);
  });
}

function refuseForeign(
  applied: { id: number; name: string; checksum: string }[],
  migrations: readonly Migration[],
): void {
  for (const [index, row] of applied.entries()) {
    const known = migrations[index];
    if (!known) {
      throw new PlatformError(
        "internal",
        `This database was written by a newer Berth (migration ${row.id} '${row.name}' is unknown here). Start the newer version, or restore a backup made by this one.`,
      );
    }
    if (known.id !== row.id || checksum(known) !== row.checksum) {
      throw new PlatformError(
        "internal",
        `Migration ${row.id} '${row.name}' of this database differs from the one this Berth knows. Restore a backup or use the matching version.`,
      );
    }
  }
}

async function apply(queries: Queries, dialect: Dialect, migration: Migration, nowMs: number): Promise<void> {
  for (const statement of [...migration.both, ...(migration[dialect] ?? [])]) {
    await sql
      .raw(statement.replace(/\{(\w+)\}/g, (_, word: string) => TYPES[dialect][word] ?? `{${word}}`))
      .execute(queries);
  }
  await sql`INSERT INTO migrations (id, name, checksum, applied_at) VALUES (${migration.id}, ${migration.name}, ${checksum(migration)}, ${nowMs})`.execute(
    queries,
  );
}

const checksum = (migration: Migration): string =>
  createHash("sha256")
    .update(JSON.stringify([migration.both, migration.sqlite ?? [], migration.postgres ?? []]))
    .digest("hex");
