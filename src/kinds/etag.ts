/** Changes that were made from a stale reading are refused: the ETag of a record is its version. */
import type { IncomingHttpHeaders } from "node:http";
import { PlatformError } from "../contract/errors.ts";

export const etagOf = ({ version }: { version: number }): string => `"${version}"`;

export function requireMatch(headers: IncomingHttpHeaders, current: { version: number }, what: string): void {
  const expected = headers["if-match"];
  if (expected === undefined || expected === "*" || expected.split(",").some((tag) => tag.trim() === etagOf(current)))
    return;
  throw new PlatformError(
    "precondition_failed",
    `${what} has changed since it was read. Read it again and repeat the change.`,
  );
}
