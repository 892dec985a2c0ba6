/** Checks, before a server of this version starts, whether it can use the database. */
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { inspectDatabase } from "../database/inspect.ts";
import { migrate } from "../database/migrations/index.ts";
import { openSqlite } from "../database/sqlite.ts";
import { SQLITE_FILE } from "../store.ts";

/**
 * Returns how many migrations this version would apply. Refuses a database that is broken or was written by a newer
 * version. On SQLite the migrations run on a copy while a server keeps using the original.
 */
export async function rehearseStart(given: {
  databaseUrl: string | null;
  dataDir: string;
  nowMs: number;
}): Promise<number> {
  const { databaseUrl, dataDir, nowMs } = given;
  const { pending, broken } = await inspectDatabase({ databaseUrl, dataDir });
  if (broken) throw new Error(`the database is damaged: ${broken}`);
  if (pending === null || pending === 0) return 0;
  if (!databaseUrl && existsSync(join(dataDir, SQLITE_FILE))) await migrateCopy(dataDir, nowMs);
  return pending;
}

async function migrateCopy(dataDir: string, nowMs: number): Promise<void> {
  const folder = join(dataDir, "upgrade.rehearsal");
  rmSync(folder, { recursive: true, force: true }); // left by a killed process
  mkdirSync(folder, { mode: 0o700 });
  try {
    const file = join(folder, SQLITE_FILE);
    const original = new DatabaseSync(join(dataDir, SQLITE_FILE), { readOnly: true });
    try {
      await backup(original, file);
    } finally {
      original.close();
    }
    const copy = openSqlite(file);
    try {
      await migrate(copy, nowMs);
    } finally {
      await copy.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
