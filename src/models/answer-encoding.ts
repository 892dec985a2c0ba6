/** How the body of an answer is compressed. */
import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { lowerName } from "../http/http1/header-name.ts";

const DECODERS: ReadonlyMap<string, () => Transform> = new Map([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", createInflate],
  ["br", createBrotliDecompress],
]);

/** Null for an answer that is not compressed, or in a way that is not known here. */
export const decoderFor = (headers: readonly string[]): Transform | null =>
  DECODERS.get(encodingOf(headers))?.() ?? null;

/** Whether the bytes of the answer can be looked at. */
export function isLegible(headers: readonly string[]): boolean {
  const encoding = encodingOf(headers);
  return encoding === "" || encoding === "identity" || DECODERS.has(encoding);
}

/** The field may come more than once; then the names are a list. */
const encodingOf = (headers: readonly string[]): string =>
  headers
    .filter((_, at) => at % 2 === 1 && lowerName(headers[at - 1] ?? "") === "content-encoding")
    .join(",")
    .trim()
    .toLowerCase();
