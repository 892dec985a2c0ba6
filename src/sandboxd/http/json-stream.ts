/**
 * JSON answers whose strings lie in files. A process's output or a file's content may be large, so it is escaped and
 * sent in chunks: an answer needs one buffer, whatever its size.
 */

import type { ServerResponse } from "node:http";
import { sendJson, writeChunk } from "./send.ts";

/** A text that is read later. `read` returns 0 at the end. */
export interface TextSource {
  /** Estimated size in bytes; only decides between sending at once and streaming. */
  sizeHint: number;
  /** True when there is certainly nothing to read; `sizeHint` may be wrong. */
  empty?: boolean;
  /** Text before the bytes, such as the marker of a dropped head. */
  prefix?: string;
  /** Fills the buffer from `position`, which counts from 0. */
  read(position: number, buffer: Uint8Array): number | Promise<number>;
}

const PIECE_BYTES = 64 * 1024;
/** Smallest buffer: files of /proc report size 0 but have content. */
const PIECE_BYTES_MIN = 4096;
/** Up to this total size everything is read at once and sent with a Content-Length. */
const SMALL_BYTES = 256 * 1024;

/** Sends `{...fixed, [key]: text...}`; the sources of a key are concatenated into one string. */
export async function sendJsonWithTexts(
  res: ServerResponse,
  fixed: Record<string, unknown>,
  texts: Record<string, TextSource[]>,
): Promise<void> {
  const sources = Object.values(texts).flat();
  if (sources.reduce((sum, source) => sum + source.sizeHint, 0) <= SMALL_BYTES) {
    // A source that several keys share is read once.
    const read = new Map<TextSource, string>();
    for (const source of sources) if (!read.has(source)) read.set(source, await readText(source));
    const strings = Object.entries(texts).map(([key, parts]) => [key, parts.map((part) => read.get(part)).join("")]);
    return sendJson(res, 200, { ...fixed, ...Object.fromEntries(strings) });
  }
  res.writeHead(200, { "Content-Type": "application/json; charset=utf-8" });
  let separator = JSON.stringify(fixed).slice(0, -1);
  if (separator !== "{") separator += ",";
  for (const [key, parts] of Object.entries(texts)) {
    if (!(await writeChunk(res, `${separator}${JSON.stringify(key)}:"`))) return;
    for (const part of parts) {
      for await (const text of piecesOf(part)) if (!(await writeChunk(res, escaped(text)))) return;
    }
    separator = '",';
  }
  res.end('"}');
}

export async function readText(source: TextSource): Promise<string> {
  if (source.empty) return "";
  let text = "";
  for await (const piece of piecesOf(source)) text += piece;
  return text;
}

/** Characters split between two reads stay whole; bytes that are no UTF-8 become replacement characters. */
async function* piecesOf({ prefix, sizeHint, read }: TextSource): AsyncGenerator<string> {
  if (prefix) yield prefix;
  const decoder = new TextDecoder();
  const buffer = Buffer.alloc(Math.max(PIECE_BYTES_MIN, Math.min(sizeHint, PIECE_BYTES)));
  for (let position = 0; ; ) {
    const got = await read(position, buffer);
    if (got === 0) break;
    position += got;
    yield decoder.decode(buffer.subarray(0, got), { stream: true });
  }
  yield decoder.decode();
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1);
