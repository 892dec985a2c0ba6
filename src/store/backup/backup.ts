/** Writes everything the platform knows into one file, online, from either database. */
import { createHash } from "node:crypto";
import { createWriteStream, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { PlatformError } from "../../contract/errors.ts";
import { MIGRATIONS, ownTables, refuseForeign } from "../database/migrations/index.ts";
import { keyStateOf } from "../sealing/key-records.ts";
import { SQLITE_FILE } from "../store.ts";
import { BACKUP_FORMAT, type BackupEnd, type BackupManifest, encodeRow } from "./format.ts";
import { portableTables } from "./portable-tables.ts";
import { type DatabaseSnapshot, openPostgresSnapshot, openSqliteSnapshot } from "./snapshot.ts";

export interface BackupOptions {
  databaseUrl: string | null;
  dataDir: string;
  /** Returns the key entry of the manifest for the database's key fingerprint. */
  keyOf(fingerprint: string | null): BackupManifest["key"];
  version: string;
  createdAt: string;
}

/** Characters collected before they are compressed as one piece. */
const PIECE_CHARS = 64 * 1024;

/** Writes the file completely or not at all. Returns the row count of each table. */
export async function writeBackup(options: BackupOptions & { file: string }): Promise<BackupEnd["rows"]> {
  const partial = `${options.file}.partial`;
  const dump = await openDump(options);
  try {
    const target = createWriteStream(partial, { mode: 0o600, flush: true });
    await pipeline(Readable.from(dump.pieces), createGzip(), target);
    renameSync(partial, options.file);
    return dump.rows;
  } finally {
    await dump.close();
    rmSync(partial, { force: true });
  }
}

export interface Dump {
  /** The backup without its compression. */
  pieces: AsyncIterable<string>;
  /** Row count of each table; complete when `pieces` has ended. */
  rows: BackupEnd["rows"];
  close(): Promise<void>;
}

/** Everything the database holds, as it is at this moment. */
export async function openDump(options: BackupOptions): Promise<Dump> {
  const { databaseUrl, dataDir } = options;
  const snapshot = databaseUrl
    ? await openPostgresSnapshot(databaseUrl)
    : openSqliteSnapshot(join(dataDir, SQLITE_FILE));
  try {
    refuseForeign(snapshot.migrations, MIGRATIONS);
    const rows: BackupEnd["rows"] = {};
    const key = options.keyOf(await fingerprintIn(snapshot));
    return { pieces: pieces(linesOf(snapshot, { ...options, key }, rows)), rows, close: () => snapshot.close() };
  } catch (error) {
    await snapshot.close();
    throw error;
  }
}

/** Refuses during a key rotation: a backup names one key, and some values still have the other. */
async function fingerprintIn(snapshot: DatabaseSnapshot): Promise<string | null> {
  if (!snapshot.tables.has("records")) return null;
  const rows: { key: string; value: string }[] = [];
  for await (const [key, value] of snapshot.rows("records", ["key", "value"]))
    rows.push({ key: String(key), value: String(value) });
  const { fingerprint, rotation } = keyStateOf(rows);
  if (rotation)
    throw new PlatformError(
      "conflict",
      "The key of the secrets is being replaced, so some of them have the old key and some the new one. Write the backup when `berth rotate-key` has ended; if it was interrupted, run it again.",
    );
  return fingerprint;
}

async function* linesOf(
  snapshot: DatabaseSnapshot,
  { key, version, createdAt }: Pick<BackupManifest, "key" | "version" | "createdAt">,
  rows: BackupEnd["rows"],
): AsyncGenerator<string> {
  const hash = createHash("sha256");
  const line = (text: string): string => {
    hash.update(`${text}\n`);
    return `${text}\n`;
  };
  const manifest: BackupManifest = {
    berth: "backup",
    format: BACKUP_FORMAT,
    createdAt,
    version,
    database: snapshot.dialect,
    migrations: snapshot.migrations,
    tables: portableTables(snapshot.tables, ownTables(MIGRATIONS)),
    key,
  };
  yield line(JSON.stringify(manifest));
  for (const { name, columns } of manifest.tables) {
    rows[name] = 0;
    yield line(JSON.stringify({ table: name }));
    for await (const row of snapshot.rows(name, columns)) {
      rows[name] += 1;
      yield line(encodeRow(row));
    }
  }
  yield `${JSON.stringify({ end: { rows, sha256: hash.digest("hex") } satisfies BackupEnd })}\n`;
}

async function* pieces(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let piece = "";
  for await (const line of lines) {
    piece += line;
    if (piece.length < PIECE_CHARS) continue;
    yield piece;
    piece = "";
  }
  yield piece;
}
