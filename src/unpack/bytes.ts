/** Reads an archive from its descriptor, plain or decompressed. */
import { readSync, writeSync } from "node:fs";
import { Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { unreadable } from "./refusal.ts";

const CHUNK_BYTES = 256 * 1024;

/** A part of a file. */
export interface Range {
  start: number;
  size: number;
}

/** A source that can skip bytes without reading them. */
export interface Seekable extends AsyncIterable<Buffer> {
  /** Skips the next bytes; false when the source has fewer. */
  seek(bytes: number): boolean;
}

export function bytesOf(fd: number, { start, size }: Range): Seekable {
  let at = 0;
  return {
    seek(bytes) {
      at += bytes;
      return at <= size;
    },
    async *[Symbol.asyncIterator]() {
      while (at < size) {
        // A new buffer per chunk: streams keep a reference to what they were given.
        const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - at));
        const read = readSync(fd, chunk, 0, chunk.length, start + at);
        if (read === 0) throw unreadable("it is cut off");
        at += read;
        yield chunk.subarray(0, read);
      }
    },
  };
}

export function readExactly(fd: number, { start, size }: Range): Buffer {
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; ) {
    const read = readSync(fd, bytes, at, size - at, start + at);
    if (read === 0) throw unreadable("it is cut off");
    at += read;
  }
  return bytes;
}

export function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at);
}

/** Detected from the first bytes, whatever the file is called. */
export function compressionOf(head: Buffer): "gzip" | "zstd" | null {
  const magic = head.toString("hex", 0, 4);
  return magic.startsWith("1f8b") ? "gzip" : magic === "28b52ffd" ? "zstd" : null;
}

/** The uncompressed bytes of a part of the archive. */
export function plainBytes(fd: number, range: Range): AsyncIterable<Buffer> {
  const compression = compressionOf(readExactly(fd, { start: range.start, size: Math.min(4, range.size) }));
  const raw = bytesOf(fd, range);
  if (compression === null) return raw;
  return expanded(raw, compression === "gzip" ? createGunzip({ chunkSize: CHUNK_BYTES }) : createZstdDecompress());
}

type Expander = NodeJS.ReadWriteStream & { destroy(error?: Error): unknown };

/** Runs bytes through a decompressor. A broken stream refuses the archive. */
export async function* expanded(source: AsyncIterable<Buffer>, expander: Expander): AsyncGenerator<Buffer> {
  const input = Readable.from(source, { objectMode: true });
  input.once("error", (error) => expander.destroy(error));
  try {
    for await (const chunk of input.pipe(expander)) yield chunk as Buffer;
  } catch {
    throw unreadable("its compression is broken");
  } finally {
    input.destroy();
    expander.destroy();
  }
}
