/** Inspects a database without changing it: does it exist, is it intact, is its schema the one this Berth needs? */
import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type DatabaseSnapshot, openPostgresSnapshot, openSqliteSnapshot } from "../backup/snapshot.ts";
import { keyStateOf, type Rotation } from "../sealing/key-records.ts";
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
  /** The rotation of the secret key that has not ended. */
  rotation: Rotation | null;
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
  if (!stat) return { pending: null, nowMs: null, broken: null, rotation: null };
  return inspect(openSqliteSnapshot(file), {
    nowMs: null,
    broken: stat.size <= CHECKED_BYTES_MAX ? quickCheck(file) : null,
  });
}

async function inspect(snapshot: DatabaseSnapshot, rest: Pick<Inspection, "nowMs" | "broken">): Promise<Inspection> {
  try {
    refuseForeign(snapshot.migrations, MIGRATIONS);
    return {
      pending: MIGRATIONS.length - snapshot.migrations.length,
      rotation: await rotationIn(snapshot),
      ...rest,
    };
  } finally {
    await snapshot.close();
  }
}

async function rotationIn(snapshot: DatabaseSnapshot): Promise<Rotation | null> {
  if (!snapshot.tables.has("records")) return null;
  const rows: { key: string; value: string }[] = [];
  for await (const [key, value] of snapshot.rows("records", ["key", "value"]))
    if (String(key).startsWith("secret-key-")) rows.push({ key: String(key), value: String(value) });
  return keyStateOf(rows).rotation;
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
