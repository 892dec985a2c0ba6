/**
 * Requested things that a request did not get, in the `Warning` header of the answer: `299 berth "text", 299 berth
 * "text"`. No schema is imported here, so that clients can read warnings without the declarations.
 */

/** Most warnings per answer, and the longest text: proxies limit the size of headers. */
const WARNINGS_MAX = 8;
const TEXT_LENGTH_MAX = 300;

const AGENT = "berth";

/** A request header by which a client asks to be refused instead of warned (RFC 7240). */
export const STRICT_HANDLING = { name: "prefer", value: "handling=strict" } as const;

export const isStrict = (prefer: string | undefined): boolean =>
  prefer !== undefined && /(?:^|[,;])\s*handling\s*=\s*"?strict"?\s*(?:[,;]|$)/i.test(prefer);

export function warningHeader(texts: readonly string[]): string {
  const shown = texts.slice(0, WARNINGS_MAX);
  if (texts.length > shown.length) shown.push(`${texts.length - shown.length} more warnings are not shown`);
  return shown.map((text) => `299 ${AGENT} "${quotable(text)}"`).join(", ");
}

/** The texts of a `Warning` header, without those of proxies on the way. */
export function readWarnings(header: string | null): string[] {
  const found = (header ?? "").matchAll(/(?:^|,)\s*299 ([^\s"]+) "((?:[^"\\]|\\.)*)"/g);
  return [...found].filter(([, agent]) => agent === AGENT).map(([, , text = ""]) => text.replace(/\\(.)/g, "$1"));
}

/** Reduces a text to printable ASCII and escapes quotes and backslashes for a quoted string. */
const quotable = (text: string): string =>
  text
    .slice(0, TEXT_LENGTH_MAX)
    .replace(/[^\x20-\x7e]/g, "?")
    .replace(/["\\]/g, "\\$&");
