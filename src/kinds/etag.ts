/**
 * Conditional requests: If-Match refuses a change that was made from a stale read, If-None-Match answers 304. The ETag
 * is the record's version, followed by a checksum of the computed members where an answer has any.
 */
import type { IncomingHttpHeaders } from "node:http";
import { crc32 } from "node:zlib";
import { PlatformError } from "../contract/errors.ts";

/** `text` is the JSON of an answer with computed members. */
export const etagOf = ({ version }: { version: number }, text: string | null = null): string =>
  text === null ? `"${version}"` : `"${version}-${crc32(text).toString(36)}"`;

/** Compares the record's version only: computed members change without a change of the record. */
export function requireMatch(headers: IncomingHttpHeaders, { version }: { version: number }, what: string): void {
  const expected = headers["if-match"];
  if (
    expected === undefined ||
    expected === "*" ||
    tagsIn(expected).some((tag) => tag.split("-")[0] === String(version))
  )
    return;
  throw new PlatformError(
    "precondition_failed",
    `${what} has changed since it was read. Read it again and repeat the change.`,
  );
}

/** Whether the caller already has this representation. */
export function isKnown(headers: IncomingHttpHeaders, etag: string): boolean {
  const known = headers["if-none-match"];
  return known !== undefined && (known.trim() === "*" || tagsIn(known).includes(etag.slice(1, -1)));
}

const tagsIn = (list: string): string[] =>
  list.split(",").map((tag) => /^\s*(?:W\/)?"([^"]*)"\s*$/.exec(tag)?.[1] ?? "");
