/**
 * Reads a zip file entry by entry, by its central directory. Whatever a record claims is bounded or checked before it
 * is believed; encrypted entries and archives beyond 4 GB are refused.
 */
import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { Readable } from "node:stream";
import { crc32, createInflateRaw } from "node:zlib";
import { PlatformError } from "../contract/errors.ts";

export interface ZipEntry {
  path: string;
  type: "file" | "directory" | "symlink" | "other";
  mode: number;
  size: number;
  body(): AsyncGenerator<Buffer>;
}

const END_SIGNATURE = 0x06054b50;
const ENTRY_SIGNATURE = 0x02014b50;
const LOCAL_SIGNATURE = 0x04034b50;
const END_BYTES = 22;
const ENTRY_BYTES = 46;
const LOCAL_BYTES = 30;
/** The end record is followed by a comment of at most this length. */
const COMMENT_BYTES_MAX = 0xffff;
/** 65,535 entries, the most without the large format, with paths of ordinary length. */
const DIRECTORY_BYTES_MAX = 32 * 1024 * 1024;
const ENCRYPTED = 1;
const STORED = 0;
const DEFLATED = 8;
/** Kinds of file in the upper bits of a Unix mode. */
const KINDS: Record<number, ZipEntry["type"]> = { 0: "file", 8: "file", 4: "directory", 10: "symlink" };

export async function* readZip(path: string): AsyncGenerator<ZipEntry> {
  const file = await open(path, "r");
  try {
    const directory = await readDirectory(file);
    for (let at = 0; at < directory.bytes.length; ) {
      const { entry, length } = parseEntry(directory.bytes, at, path, file);
      yield entry;
      at += length;
    }
  } finally {
    await file.close();
  }
}

async function readDirectory(file: FileHandle): Promise<{ bytes: Buffer }> {
  const { size } = await file.stat();
  const tail = await readAt(
    file,
    Math.max(0, size - END_BYTES - COMMENT_BYTES_MAX),
    Math.min(size, END_BYTES + COMMENT_BYTES_MAX),
  );
  let end = tail.length - END_BYTES;
  while (end >= 0 && tail.readUInt32LE(end) !== END_SIGNATURE) end -= 1;
  if (end < 0) throw malformed("it has no end");
  const length = tail.readUInt32LE(end + 12);
  const offset = tail.readUInt32LE(end + 16);
  if (offset === 0xffffffff || tail.readUInt16LE(end + 10) === 0xffff) throw malformed("it is larger than 4 GB");
  if (length > DIRECTORY_BYTES_MAX || offset + length > size) throw malformed("its directory is not where it says");
  return { bytes: await readAt(file, offset, length) };
}

function parseEntry(bytes: Buffer, at: number, zip: string, file: FileHandle): { entry: ZipEntry; length: number } {
  if (at + ENTRY_BYTES > bytes.length || bytes.readUInt32LE(at) !== ENTRY_SIGNATURE)
    throw malformed("its directory is broken");
  const nameLength = bytes.readUInt16LE(at + 28);
  const length = ENTRY_BYTES + nameLength + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
  if (at + length > bytes.length) throw malformed("its directory is cut off");
  const path = bytes.toString("utf8", at + ENTRY_BYTES, at + ENTRY_BYTES + nameLength);
  const madeOnUnix = bytes[at + 5] === 3;
  const mode = madeOnUnix ? bytes.readUInt16LE(at + 40) : 0;
  const content = {
    flags: bytes.readUInt16LE(at + 8),
    method: bytes.readUInt16LE(at + 10),
    sum: bytes.readUInt32LE(at + 16),
    packed: bytes.readUInt32LE(at + 20),
    size: bytes.readUInt32LE(at + 24),
    offset: bytes.readUInt32LE(at + 42),
  };
  const type = path.endsWith("/") ? "directory" : (KINDS[mode >> 12] ?? "other");
  return {
    entry: { path, type, mode: mode & 0o777, size: content.size, body: () => readContent(zip, file, content) },
    length,
  };
}

interface Content {
  flags: number;
  method: number;
  sum: number;
  packed: number;
  size: number;
  offset: number;
}

/** Never yields more than the entry's own size, however much its content inflates to. */
async function* readContent(zip: string, file: FileHandle, content: Content): AsyncGenerator<Buffer> {
  const { flags, method, packed, size, offset } = content;
  if ((flags & ENCRYPTED) !== 0) throw malformed("it is encrypted");
  if (method !== STORED && method !== DEFLATED) throw malformed("it uses an unknown compression");
  const local = await readAt(file, offset, LOCAL_BYTES);
  if (local.readUInt32LE(0) !== LOCAL_SIGNATURE) throw malformed("a file is not where the directory says");
  const start = offset + LOCAL_BYTES + local.readUInt16LE(26) + local.readUInt16LE(28);
  const raw = packed === 0 ? Readable.from([]) : createReadStream(zip, { start, end: start + packed - 1 });
  let left = size;
  let sum = 0;
  try {
    const unpacked = method === STORED ? raw : raw.pipe(createInflateRaw());
    raw.once("error", (error: Error) => unpacked.destroy(error));
    for await (const chunk of size === 0 ? [] : (unpacked as AsyncIterable<Buffer>)) {
      left -= chunk.length;
      if (left < 0) throw malformed("a file is larger than the directory says");
      sum = crc32(chunk, sum);
      yield chunk;
    }
  } catch (error) {
    if (error instanceof PlatformError) throw error;
    throw malformed("a file in it is broken");
  } finally {
    raw.destroy();
  }
  if (left !== 0 || sum !== content.sum) throw malformed("a file in it is damaged");
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { bytesRead, buffer } = await file.read({ buffer: Buffer.alloc(length), position, length });
  if (bytesRead < length) throw malformed("it is cut off");
  return buffer;
}

const malformed = (reason: string): PlatformError =>
  new PlatformError("bad_request", `The archive cannot be read: ${reason}.`);
