/**
 * Large files that clients send. Each is stored under the hash of its content, so equal content is stored once. A file
 * is there whole or not at all; unfinished files are removed at the next start.
 */
import { createHash, type Hash } from "node:crypto";
import { createReadStream, createWriteStream, mkdirSync, rmSync, statSync } from "node:fs";
import { mkdtemp, readdir, readFile, rename, rm, stat, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { PlatformError } from "../../contract/errors.ts";
import { randomWord } from "../../lib/ids.ts";

export interface Blob {
  /** Hash of the content, in hex. */
  digest: string;
  sizeBytes: number;
}

export interface BlobStore {
  /** Stores a stream, buffering at most one chunk. */
  put(content: NodeJS.ReadableStream, bytesMax: number): Promise<Blob>;
  /** Writes the stream to a temporary file; the caller reads and removes it. */
  receive(content: NodeJS.ReadableStream, bytesMax: number): Promise<{ path: string; sizeBytes: number }>;
  /** Writes the stream to the end of a temporary file, at most `bytesMax` bytes; returns how many. */
  append(path: string, content: NodeJS.ReadableStream, bytesMax: number, hash: Hash): Promise<number>;
  /** Stores a temporary file, whose content has this hash. */
  adopt(path: string, digest: string): Promise<void>;
  /** The path of the file; null when there is none. */
  find(digest: string): Promise<string | null>;
  list(): Promise<{ digest: string; writtenMs: number }[]>;
  /** `writtenMs`: as the list told it; a file that was written again since stays. */
  remove(digest: string, writtenMs?: number): Promise<void>;
  /** Stores a small JSON value under a key. */
  writeNote(key: string, value: unknown): Promise<void>;
  readNote(key: string): Promise<unknown>;
  listNotes(): Promise<{ key: string; writtenMs: number }[]>;
  removeNote(key: string): Promise<void>;
  /** Makes a folder for work in progress; the caller removes it. */
  makeWorkFolder(): Promise<string>;
}

/** Where the servers of one database share files; the folder of each server is a cache of it. */
export interface SharedBlobs {
  write(digest: string, content: () => AsyncIterable<Buffer>): Promise<void>;
  read(digest: string): Promise<AsyncIterable<Buffer> | null>;
  /** Unfinished files too. */
  list(): Promise<{ digest: string; writtenMs: number }[]>;
  /** Does nothing when the file was written again after `writtenMs`. */
  remove(digest: string, writtenMs: number): Promise<void>;
}

/** Free space left for the database on the same disk. */
const DISK_RESERVE_BYTES = 256 * 1024 * 1024;

const DIGEST = /^[0-9a-f]{64}$/;

/** `shared` absent: no other server needs the files. */
export function openBlobStore(dir: string, shared?: SharedBlobs): BlobStore {
  const kept = join(dir, "sha256");
  const notes = join(dir, "notes");
  const temp = join(dir, "temp");
  rmSync(temp, { recursive: true, force: true });
  for (const folder of [kept, notes, temp]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  /** Copies the file from the shared store to the folder; false when the shared store does not have it, or not whole. */
  async function fetched(digest: string): Promise<boolean> {
    const content = await shared?.read(digest);
    if (!content) return false;
    const hash = createHash("sha256");
    const { path } = await receive(temp, Readable.from(content), Number.POSITIVE_INFINITY, hash);
    const isWhole = hash.digest("hex") === digest;
    await (isWhole ? rename(path, join(kept, digest)) : rm(path, { force: true }));
    return isWhole;
  }

  async function adopt(path: string, digest: string): Promise<void> {
    await shared?.write(digest, () => createReadStream(path));
    await rename(path, join(kept, digest));
  }

  return {
    async put(content, bytesMax) {
      const hash = createHash("sha256");
      const { path, sizeBytes } = await receive(temp, content, bytesMax, hash);
      const digest = hash.digest("hex");
      // While the shared store does not answer, refused uploads must not fill the disk.
      await adopt(path, digest).catch(async (error: unknown) => {
        await rm(path, { force: true });
        throw error;
      });
      return { digest, sizeBytes };
    },
    append: (path, content, bytesMax, hash) => write(path, "a", content, bytesMax, hash),
    adopt,
    receive: (content, bytesMax) => receive(temp, content, bytesMax),
    async find(digest) {
      if (!DIGEST.test(digest)) return null;
      const file = join(kept, digest);
      const isHere = await stat(file).then(
        () => true,
        () => false,
      );
      return isHere || (await fetched(digest)) ? file : null;
    },
    list: async () => (await listFolder(kept)).map(({ key: digest, writtenMs }) => ({ digest, writtenMs })),
    async remove(digest, writtenMs) {
      if (!DIGEST.test(digest)) return;
      const file = join(kept, digest);
      // Both at once: nothing of this process comes between.
      if (writtenMs === undefined || statSync(file, { throwIfNoEntry: false })?.mtimeMs === writtenMs)
        rmSync(file, { force: true });
    },
    async writeNote(key, value) {
      const file = join(temp, randomWord(16));
      await writeFile(file, JSON.stringify(value), { mode: 0o600, flush: true });
      await rename(file, join(notes, noteName(key)));
    },
    async readNote(key) {
      const text = await readFile(join(notes, noteName(key)), "utf8").catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return "null";
        throw error;
      });
      return JSON.parse(text) as unknown;
    },
    listNotes: () => listFolder(notes),
    removeNote: (key) => rm(join(notes, noteName(key)), { force: true }),
    makeWorkFolder: () => mkdtemp(join(temp, "work-")),
  };
}

async function receive(
  folder: string,
  content: NodeJS.ReadableStream,
  bytesMax: number,
  hash?: Hash,
): Promise<{ path: string; sizeBytes: number }> {
  const path = join(folder, randomWord(16));
  try {
    return { path, sizeBytes: await write(path, "wx", content, bytesMax, hash) };
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

/** Returns how many bytes were written. */
async function write(
  path: string,
  flags: "wx" | "a",
  content: NodeJS.ReadableStream,
  bytesMax: number,
  hash?: Hash,
): Promise<number> {
  const { bavail, bsize } = await statfs(dirname(path));
  const limit = Math.min(bytesMax, Math.max(0, bavail * bsize - DISK_RESERVE_BYTES));
  let sizeBytes = 0;
  const count = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      sizeBytes += chunk.length;
      if (sizeBytes > limit) return done(tooLarge(limit));
      hash?.update(chunk);
      done(null, chunk);
    },
  });
  await pipeline(content, count, createWriteStream(path, { flags, mode: 0o600, flush: true }));
  return sizeBytes;
}

async function listFolder(folder: string): Promise<{ key: string; writtenMs: number }[]> {
  const names = (await readdir(folder)).filter((name) => DIGEST.test(name));
  return Promise.all(names.map(async (key) => ({ key, writtenMs: (await stat(join(folder, key))).mtimeMs })));
}

/** Keys must be hashes, so that a key cannot be a path. */
function noteName(key: string): string {
  if (!DIGEST.test(key)) throw new Error("a note's key is a hash");
  return key;
}

const tooLarge = (bytesMax: number): PlatformError =>
  new PlatformError("payload_too_large", `At most ${Math.floor(bytesMax / 1024 / 1024)} MB can be sent here.`);
