/** Inspects a database without changing it: does it exist, is it intact, is its schema the one this Berth needs? */
import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type DatabaseSnapshot, openPostgresSnapshot, openSqliteSnapshot } from "../backup/snapshot.ts";
import { SQLITE_FILE } from "../store.ts";
import { MIGRATIONS, refuseForeign } from "./migrations/index.ts";

/** Larger SQLite files are not checked for damage: reading all of one takes too long for an inspection. */
const CHECKED_BYTES_MAX = 256 * 1024 * 1024;

export interface Inspection {
  /** Migrations that this Berth would apply at its next start; null when there is no database yet. */
  pending: number | null;
  /** The database server's clock; null where there is none. */
  nowMs: number | null;
  /** The damage in SQLite's words; null when none was found. */
  broken: string | null;
}

export async function inspectDatabase({
  databaseUrl,
  dataDir,
}: {
  databaseUrl: string | null;
  dataDir: string;
}): Promise<Inspection> {
  if (databaseUrl) {
    const snapshot = await openPostgresSnapshot(databaseUrl);
    return inspect(snapshot, { nowMs: await snapshot.nowMs(), broken: null });
  }
  const file = join(dataDir, SQLITE_FILE);
  const stat = statSync(file, { throwIfNoEntry: false });
  if (!stat) return { pending: null, nowMs: null, broken: null };
  return inspect(openSqliteSnapshot(file), {
    nowMs: null,
    broken: stat.size <= CHECKED_BYTES_MAX ? quickCheck(file) : null,
  });
}

async function inspect(snapshot: DatabaseSnapshot, rest: Omit<Inspection, "pending">): Promise<Inspection> {
  try {
    refuseForeign(snapshot.migrations, MIGRATIONS);
    return { pending: MIGRATIONS.length - snapshot.migrations.length, ...rest };
  } finally {
    await snapshot.close();
  }
}

function quickCheck(file: string): string | null {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const answer = database.prepare("PRAGMA quick_check(1)").get() as { quick_check: string };
    return answer.quick_check === "ok" ? null : answer.quick_check;
  } finally {
    database.close();
  }
}
