/** Sends a file's bytes, whole or one range, with backpressure from the client. */

import { closeSync } from "node:fs";
import { ApiError } from "../http/api-error.ts";
import type { Call } from "../http/call.ts";
import { writeChunk } from "../http/send.ts";
import { type BytePath, baseName, toText } from "./byte-path.ts";
import { type OpenFile, openRegular, readAt } from "./file-io.ts";

const CHUNK_BYTES = 256 * 1024;

const TYPES: Record<string, string> = {
  css: "text/css",
  csv: "text/csv",
  gif: "image/gif",
  gz: "application/gzip",
  htm: "text/html",
  html: "text/html",
  ico: "image/vnd.microsoft.icon",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  js: "text/javascript",
  json: "application/json",
  md: "text/markdown",
  mjs: "text/javascript",
  mp3: "audio/mpeg",
  mp4: "video/mp4",
  pdf: "application/pdf",
  png: "image/png",
  py: "text/x-python",
  svg: "image/svg+xml",
  tar: "application/x-tar",
  ts: "text/plain",
  txt: "text/plain",
  wasm: "application/wasm",
  webp: "image/webp",
  xml: "application/xml",
  yaml: "application/yaml",
  yml: "application/yaml",
  zip: "application/zip",
};

export async function sendFile(call: Call, path: BytePath): Promise<void> {
  const file = openRegular(path);
  try {
    await send(call, file, toText(baseName(path)));
  } finally {
    closeSync(file.fd);
  }
}

async function send({ req, res }: Call, file: OpenFile, name: string): Promise<void> {
  const { size } = file.stats;
  const range = size > 0 ? parseRange(req.headers.range, size) : null;
  if (range === "unsatisfiable") {
    res.setHeader("Content-Range", `bytes */${size}`);
    throw new ApiError(416, `The file has ${size} bytes; the asked range lies behind its end.`);
  }
  const { first, last } = range ?? { first: 0, last: size - 1 };
  res.writeHead(range ? 206 : 200, {
    "Content-Type": TYPES[/\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? ""] ?? "application/octet-stream",
    "Content-Disposition": disposition(name),
    "Last-Modified": file.stats.mtime.toUTCString(),
    "Accept-Ranges": "bytes",
    ...(range ? { "Content-Range": `bytes ${first}-${last}/${size}` } : {}),
    // Files of /proc report size 0 but have content: send no length and read until the end.
    ...(size > 0 ? { "Content-Length": last - first + 1 } : {}),
  });
  const end = size > 0 ? last + 1 : Number.POSITIVE_INFINITY;
  for (let position = first; position < end; ) {
    // A new buffer per chunk: the previous one may still be queued in the socket.
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, end - position));
    const got = await readAt(file, position, buffer);
    if (got === 0) break;
    position += got;
    if (!(await writeChunk(res, buffer.subarray(0, got)))) return;
  }
  res.end();
}

type Range = { first: number; last: number };

/** Parses a single range. A request for several ranges is answered with the whole file, as RFC 9110 allows. */
function parseRange(header: string | undefined, size: number): Range | "unsatisfiable" | null {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? "");
  if (!match || (match[1] === "" && match[2] === "")) return null;
  if (match[1] === "") {
    const wanted = Math.min(Number(match[2]), size);
    return wanted === 0 ? "unsatisfiable" : { first: size - wanted, last: size - 1 };
  }
  const first = Number(match[1]);
  const last = match[2] === "" ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (first >= size) return "unsatisfiable";
  return last < first ? null : { first, last };
}

/** A plain ASCII name for old clients and the encoded form for all others. */
function disposition(name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\]/g, "_");
  const encoded = encodeURIComponent(name.toWellFormed()).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
