/**
 * Reads a zip file entry by entry, by its central directory. Every value of a record is bounded or checked before it is
 * used. Encrypted entries and archives beyond 4 GB are refused.
 */
import { fstatSync } from "node:fs";
import { crc32, createInflateRaw } from "node:zlib";
import { bytesOf, expanded, readExactly } from "./bytes.ts";
import { unreadable } from "./refusal.ts";

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
/** Longest comment after the end record. */
const COMMENT_BYTES_MAX = 0xffff;
/** Largest central directory: 65,535 entries, the most without zip64, with paths of ordinary length. */
const DIRECTORY_BYTES_MAX = 32 * 1024 * 1024;
const ENCRYPTED = 1;
const STORED = 0;
const DEFLATED = 8;
/** Kinds of file in the upper bits of a Unix mode. */
const KINDS: Record<number, ZipEntry["type"]> = { 0: "file", 8: "file", 4: "directory", 10: "symlink" };

/** `fd` must be open for reading and is not closed. */
export function* readZip(fd: number): Generator<ZipEntry> {
  const directory = readDirectory(fd);
  for (let at = 0; at < directory.length; ) {
    const { entry, length } = parseEntry(directory, at, fd);
    yield entry;
    at += length;
  }
}

function readDirectory(fd: number): Buffer {
  const { size } = fstatSync(fd);
  const tailBytes = Math.min(size, END_BYTES + COMMENT_BYTES_MAX);
  const tail = readExactly(fd, { start: size - tailBytes, size: tailBytes });
  let end = tail.length - END_BYTES;
  while (end >= 0 && tail.readUInt32LE(end) !== END_SIGNATURE) end -= 1;
  if (end < 0) throw unreadable("it has no end");
  const length = tail.readUInt32LE(end + 12);
  const offset = tail.readUInt32LE(end + 16);
  if (offset === 0xffffffff || tail.readUInt16LE(end + 10) === 0xffff) throw unreadable("it is larger than 4 GB");
  if (length > DIRECTORY_BYTES_MAX || offset + length > size) throw unreadable("its directory is not where it says");
  return readExactly(fd, { start: offset, size: length });
}

function parseEntry(bytes: Buffer, at: number, fd: number): { entry: ZipEntry; length: number } {
  if (at + ENTRY_BYTES > bytes.length || bytes.readUInt32LE(at) !== ENTRY_SIGNATURE)
    throw unreadable("its directory is broken");
  const nameLength = bytes.readUInt16LE(at + 28);
  const length = ENTRY_BYTES + nameLength + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
  if (at + length > bytes.length) throw unreadable("its directory is cut off");
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
    entry: { path, type, mode: mode & 0o777, size: content.size, body: () => readContent(fd, content) },
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

/** Never yields more than the declared size of the entry, whatever its content inflates to. */
async function* readContent(fd: number, content: Content): AsyncGenerator<Buffer> {
  const { flags, method, packed, size, offset } = content;
  if ((flags & ENCRYPTED) !== 0) throw unreadable("it is encrypted");
  if (method !== STORED && method !== DEFLATED) throw unreadable("it uses an unknown compression");
  const local = readExactly(fd, { start: offset, size: LOCAL_BYTES });
  if (local.readUInt32LE(0) !== LOCAL_SIGNATURE) throw unreadable("a file is not where the directory says");
  const start = offset + LOCAL_BYTES + local.readUInt16LE(26) + local.readUInt16LE(28);
  const raw = bytesOf(fd, { start, size: packed });
  let left = size;
  let sum = 0;
  for await (const chunk of size === 0 ? [] : method === STORED ? raw : expanded(raw, createInflateRaw())) {
    left -= chunk.length;
    if (left < 0) throw unreadable("a file is larger than the directory says");
    sum = crc32(chunk, sum);
    yield chunk;
  }
  if (left !== 0 || sum !== content.sum) throw unreadable("a file in it is damaged");
}
