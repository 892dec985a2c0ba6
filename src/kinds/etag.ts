/**
 * Changes that were made from a stale reading are refused, and readings that changed nothing are not sent again. The
 * ETag of a record is its version; where members are computed at the time of reading, a digest of them stands behind it.
 */
import type { IncomingHttpHeaders } from "node:http";
import { crc32 } from "node:zlib";
import { PlatformError } from "../contract/errors.ts";

export const etagOf = ({ version }: { version: number }, shown: unknown = null): string =>
  shown === null ? `"${version}"` : `"${version}-${crc32(JSON.stringify(shown)).toString(36)}"`;

/** What is computed changes by itself; a change is judged by the record alone. */
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

/** True when the caller has this very reading. */
export function isKnown(headers: IncomingHttpHeaders, etag: string): boolean {
  const known = headers["if-none-match"];
  return known !== undefined && (known.trim() === "*" || tagsIn(known).includes(etag.slice(1, -1)));
}

const tagsIn = (list: string): string[] =>
  list.split(",").map((tag) => /^\s*(?:W\/)?"([^"]*)"\s*$/.exec(tag)?.[1] ?? "");
