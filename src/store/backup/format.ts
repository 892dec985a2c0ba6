/**
 * The backup file: gzip over lines of JSON. The first line is the manifest, then each table is a line with its name
 * followed by one line per row, and the last line counts the rows and carries the checksum of everything before it,
 * so a file that is cut off or changed is told from a whole one. Nothing in it depends on the database it came from.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { PlatformError } from "../../contract/errors.ts";
import type { Dialect } from "../database/database.ts";

export const BACKUP_FORMAT = 1;
/** Longer than any row. The limit keeps a line without an end from filling the memory. */
const LINE_BYTES_MAX = 128 * 1024 * 1024;

export interface BackupManifest {
  berth: "backup";
  format: number;
  createdAt: string;
  version: string;
  database: Dialect;
  migrations: { id: number; name: string; checksum: string }[];
  tables: { name: string; columns: string[] }[];
  /** The key that seals the secrets: its fingerprint, and the key itself if the operator asked for it. */
  key: { fingerprint: string; secret?: string };
}

export type BackupValue = string | number | bigint | null | Uint8Array;

export interface BackupEnd {
  rows: Record<string, number>;
  sha256: string;
}

/** Integers that JSON numbers cannot hold exactly and byte values are wrapped; other values are written as they are. */
export const encodeRow = (row: readonly BackupValue[]): string =>
  JSON.stringify(
    row.map((value) => {
      if (typeof value === "bigint") {
        const number = Number(value);
        return Number.isSafeInteger(number) ? number : { int: String(value) };
      }
      return value instanceof Uint8Array ? { bytes: Buffer.from(value).toString("base64") } : value;
    }),
  );

export const decodeRow = (row: readonly unknown[]): BackupValue[] =>
  row.map((value) => {
    if (value === null || typeof value === "string" || typeof value === "number") return value;
    const { int, bytes } = value as { int?: string; bytes?: string };
    if (typeof int === "string") return BigInt(int);
    if (typeof bytes === "string") return Buffer.from(bytes, "base64");
    throw damaged("a row holds what no backup writes");
  });

export interface BackupReader {
  manifest: BackupManifest;
  /** Yields every row once; throws at the end if the file is incomplete. */
  rows(): AsyncGenerator<{ table: string; row: BackupValue[] }, BackupEnd>;
  close(): void;
}

export function openBackup(file: string): Promise<BackupReader> {
  const source = createReadStream(file);
  return readBackup(source.pipe(createGunzip()), source);
}

/** `source`: what `unzipped` comes from, where errors of reading show. */
export async function readBackup(unzipped: AsyncIterable<Buffer>, source: Readable): Promise<BackupReader> {
  const hash = createHash("sha256");
  const lines = linesOf(unzipped, source);
  const first = await lines.next();
  if (first.done) throw damaged("it is empty");
  hash.update(`${first.value}\n`);
  const manifest = readManifest(first.value);
  return { manifest, rows: () => rowsOf(lines, hash), close: () => source.destroy() };
}

function readManifest(line: string): BackupManifest {
  const manifest = parseLine(line) as Partial<BackupManifest> | null;
  if (manifest?.berth !== "backup" || !Array.isArray(manifest.migrations) || !Array.isArray(manifest.tables)) {
    throw new PlatformError("unprocessable", "This is not a backup of Berth.");
  }
  if (manifest.format !== BACKUP_FORMAT) {
    throw new PlatformError(
      "unprocessable",
      `This backup has format ${manifest.format}; this Berth reads format ${BACKUP_FORMAT}. Restore it with the version that made it (${manifest.version}).`,
    );
  }
  return manifest as BackupManifest;
}

async function* rowsOf(
  lines: AsyncGenerator<string, void>,
  hash: ReturnType<typeof createHash>,
): AsyncGenerator<{ table: string; row: BackupValue[] }, BackupEnd> {
  const counted: Record<string, number> = {};
  let table: string | null = null;
  for await (const line of lines) {
    const value = parseLine(line);
    if (Array.isArray(value)) {
      if (table === null) throw damaged("a row belongs to no table");
      counted[table] = (counted[table] ?? 0) + 1;
      yield { table, row: decodeRow(value as unknown[]) };
    } else {
      const { table: next, end } = (value ?? {}) as { table?: string; end?: BackupEnd };
      if (end) return checkEnd(end, counted, hash.digest("hex"), await lines.next());
      if (typeof next !== "string") throw damaged("a line is neither a row nor a table");
      table = next;
      counted[table] = 0;
    }
    hash.update(`${line}\n`);
  }
  throw damaged("its end is missing");
}

function checkEnd(
  end: BackupEnd,
  counted: Record<string, number>,
  sha256: string,
  more: IteratorResult<string, void>,
): BackupEnd {
  if (!more.done) throw damaged("something follows its end");
  if (end.sha256 !== sha256) throw damaged("its checksum does not match");
  if (JSON.stringify(end.rows) !== JSON.stringify(counted)) throw damaged("rows are missing");
  return end;
}

async function* linesOf(unzipped: AsyncIterable<Buffer>, source: NodeJS.EventEmitter): AsyncGenerator<string, void> {
  // An error of the source does not end the stream that it is piped into.
  const failed = new Promise<never>((_, reject) => source.once("error", reject));
  failed.catch(() => {}); // the loop below reports the error
  const chunks = unzipped[Symbol.asyncIterator]();
  let rest: Buffer[] = [];
  let bytes = 0;
  for (;;) {
    const next = await Promise.race([chunks.next(), failed]).catch((error: NodeJS.ErrnoException) => {
      throw error.code?.startsWith("Z_") ? damaged(`it cannot be unpacked: ${error.message}`) : error;
    });
    if (next.done) break;
    let from = 0;
    for (let at = next.value.indexOf(10); at !== -1; at = next.value.indexOf(10, from)) {
      yield Buffer.concat([...rest, next.value.subarray(from, at)]).toString("utf8");
      rest = [];
      bytes = 0;
      from = at + 1;
    }
    rest.push(next.value.subarray(from));
    bytes += next.value.length - from;
    if (bytes > LINE_BYTES_MAX) throw damaged("a line has no end");
  }
  if (bytes > 0) throw damaged("its last line is cut off");
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    throw damaged("a line is not JSON");
  }
}

const damaged = (why: string): PlatformError =>
  new PlatformError("unprocessable", `The backup is damaged: ${why}. Use another copy; nothing was changed.`);
