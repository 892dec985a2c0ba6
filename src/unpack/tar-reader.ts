/**
 * Reads a tar stream entry by entry: ustar with pax and GNU extensions, as image tools write it. Every value of a
 * header is bounded before it is used.
 */
import type { Seekable } from "./bytes.ts";
import { refused, unreadable } from "./refusal.ts";

export interface TarEntry {
  path: string;
  type: "file" | "link" | "symlink" | "directory" | "device" | "fifo";
  linkPath: string;
  mode: number;
  uid: number;
  gid: number;
  size: number;
  /** Content of an entry that is no file. */
  skippedBytes: number;
  mtimeS: number;
  /** Offset of the content in the stream. */
  offset: number;
  /** The content; unread bytes are skipped. */
  body: () => AsyncGenerator<Buffer>;
}

const BLOCK = 512;
/** Longest extended header. Real ones hold a path and a few attributes; a longer one is an attack on memory. */
const EXTENSION_BYTES_MAX = 1024 * 1024;
const TYPES: Record<string, TarEntry["type"]> = {
  "0": "file",
  "\0": "file",
  "7": "file",
  "1": "link",
  "2": "symlink",
  "3": "device",
  "4": "device",
  "5": "directory",
  "6": "fifo",
};
/** An entry about the archive itself, not about a file. */
const VOLUME_LABEL = "V";
/** Keys used from an extended header; others change neither path nor content. */
const PAX_KEYS = ["path", "linkpath", "size", "uid", "gid", "mtime"];
/** Marks a sparse file, whose content in the archive is not the file's content. */
const PAX_SPARSE = "GNU.sparse.";
/** Latest accepted time, in seconds: about the year 2500. */
const MTIME_S_MAX = 2 ** 34;

/**
 * Yields the entries. Unread content of a seekable source is skipped; other sources are read to the end, to be hashed.
 */
export async function* readTar(source: AsyncIterable<Buffer> | Seekable): AsyncGenerator<TarEntry> {
  const input = new ByteSource(source);
  let extended: Record<string, string> = {};
  /** Names in headers of their own, which count before all others. */
  let long: Record<string, string> = {};
  for (;;) {
    const header = await input.take(BLOCK);
    if (header === null || header.every((byte) => byte === 0)) break;
    checkSum(header);
    const kind = String.fromCharCode(header[156] ?? 0);
    const isExtension = "xgLK".includes(kind);
    const size = sizeOf(header, isExtension ? {} : extended);
    const padding = (BLOCK - (size % BLOCK)) % BLOCK;
    if (isExtension) {
      if (size > EXTENSION_BYTES_MAX) throw unreadable("an extended header is too long");
      const content = await input.take(size);
      if (content === null) throw unreadable("it is cut off");
      await input.skip(padding);
      if (kind === "x") extended = parsePax(content);
      else if (kind === "L") long.path = textOf(content);
      else if (kind === "K") long.linkpath = textOf(content);
      else [extended, long] = [{}, {}]; // about the whole archive: no entry is between an entry and its own header
      continue;
    }
    const parsed = parseHeader(header, { ...extended, ...long });
    // Archives from before folders had a type.
    const type = kind === "\0" && parsed.path.endsWith("/") ? "directory" : TYPES[kind];
    if (!type && kind !== VOLUME_LABEL) throw refused(unknownKind(kind));
    let left = type === "file" ? size : 0;
    const entry = { ...parsed, size: left, skippedBytes: size - left, offset: input.position, body };
    async function* body(): AsyncGenerator<Buffer> {
      while (left > 0) {
        const chunk = await input.some(left);
        if (chunk === null) throw unreadable("it is cut off");
        left -= chunk.length;
        yield chunk;
      }
    }
    [extended, long] = [{}, {}];
    if (type) yield { ...entry, type };
    await input.skip((type === "file" ? left : size) + padding);
  }
  await input.drain();
}

function parseHeader(
  header: Buffer,
  extended: Record<string, string>,
): Omit<TarEntry, "type" | "size" | "skippedBytes" | "offset" | "body"> {
  const prefix = header.toString("latin1", 257, 262) === "ustar" ? textOf(header.subarray(345, 500)) : "";
  const name = textOf(header.subarray(0, 100));
  return {
    path: extended.path ?? (prefix === "" ? name : `${prefix}/${name}`),
    linkPath: extended.linkpath ?? textOf(header.subarray(157, 257)),
    mode: numberOf(header.subarray(100, 108)) & 0o7777,
    uid: Number(extended.uid ?? numberOf(header.subarray(108, 116))),
    gid: Number(extended.gid ?? numberOf(header.subarray(116, 124))),
    mtimeS: timeOf(Number(extended.mtime ?? numberOf(header.subarray(136, 148)))),
  };
}

const timeOf = (seconds: number): number => (seconds > 0 && seconds < MTIME_S_MAX ? seconds : 0);

const unknownKind = (kind: string): string =>
  kind === "S" ? SPARSE : `it holds an entry of the unknown kind ${JSON.stringify(kind)}`;
const SPARSE = "a file in it is stored with holes; pack it without --sparse";

function sizeOf(header: Buffer, extended: Record<string, string>): number {
  const size = Number(extended.size ?? numberOf(header.subarray(124, 136)));
  if (!Number.isSafeInteger(size) || size < 0) throw unreadable("a size is not a number");
  return size;
}

/** Octal text, or big-endian binary when the first bit is set. */
function numberOf(field: Buffer): number {
  if (((field[0] ?? 0) & 0x80) !== 0) {
    let value = BigInt((field[0] ?? 0) & 0x7f);
    for (const byte of field.subarray(1)) value = (value << 8n) | BigInt(byte);
    return Number(value);
  }
  const text = field
    .toString("latin1")
    .replace(/^[ \0]+/, "")
    .replace(/[ \0].*$/s, "");
  return text === "" ? 0 : Number.parseInt(text, 8);
}

function textOf(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? field.length : end);
}

/** Records `<length> <key>=<value>\n`. */
function parsePax(content: Buffer): Record<string, string> {
  const values: Record<string, string> = {};
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(0x20, at);
    const length = Number(content.toString("latin1", at, space));
    if (space < 0 || !Number.isInteger(length) || length <= space - at + 1 || at + length > content.length) {
      throw unreadable("an extended header is broken");
    }
    const record = content.toString("utf8", space + 1, at + length - 1);
    const equals = record.indexOf("=");
    const key = record.slice(0, equals);
    if (key.startsWith(PAX_SPARSE)) throw refused(SPARSE);
    // Without a value, the header's own counts.
    if (PAX_KEYS.includes(key) && equals + 1 < record.length) values[key] = record.slice(equals + 1);
    at += length;
  }
  return values;
}

function checkSum(header: Buffer): void {
  let sum = 0;
  header.forEach((byte, index) => {
    sum += index >= 148 && index < 156 ? 0x20 : byte;
  });
  if (sum !== numberOf(header.subarray(148, 156))) throw unreadable("a header's sum is wrong");
}

/** Takes bytes from a stream of chunks. */
class ByteSource {
  /** Bytes taken so far. */
  position = 0;
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #seek: Seekable["seek"] | null;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer> | Seekable) {
    this.#chunks = source[Symbol.asyncIterator]();
    this.#seek = "seek" in source ? source.seek : null;
  }

  /** Up to `max` bytes, as available; null at the end. */
  async some(max: number): Promise<Buffer | null> {
    while (this.#rest.length === 0) {
      const next = await this.#chunks.next();
      if (next.done) return null;
      this.#rest = next.value;
    }
    const taken = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(taken.length);
    this.position += taken.length;
    return taken;
  }

  /** Exactly `size` bytes; null when the stream ended before the first byte. */
  async take(size: number): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    for (let left = size; left > 0; ) {
      const part = await this.some(left);
      if (part === null && parts.length === 0) return null;
      if (part === null) throw unreadable("it is cut off");
      parts.push(part);
      left -= part.length;
    }
    return parts.length === 1 ? (parts[0] ?? null) : Buffer.concat(parts);
  }

  async skip(size: number): Promise<void> {
    for (let left = size; left > 0; ) {
      if (this.#seek && this.#rest.length === 0) {
        if (!this.#seek(left)) throw unreadable("it is cut off");
        this.position += left;
        return;
      }
      const part = await this.some(left);
      if (part === null) throw unreadable("it is cut off");
      left -= part.length;
    }
  }

  /** Reads to the end, so that a hash over the stream covers all of it. */
  async drain(): Promise<void> {
    while (!this.#seek && (await this.some(Number.MAX_SAFE_INTEGER)) !== null);
  }
}
