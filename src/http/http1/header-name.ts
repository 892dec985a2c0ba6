/** Cache of lower-cased header names: the same few spellings come with every request. */
const known = new Map<string, string>();

/** Cached spellings. Clients choose the names, so the cache must be bounded. */
const KNOWN_MAX = 2000;

export function lowerName(name: string): string {
  const found = known.get(name);
  if (found !== undefined) return found;
  const lower = name.toLowerCase();
  if (known.size < KNOWN_MAX && name.length <= 64) known.set(name, lower);
  return lower;
}

/** Fields that concern one connection only and never travel further (RFC 9110, 7.6.1). */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "proxy-connection",
  "keep-alive",
  "te",
  "transfer-encoding",
  "upgrade",
  "proxy-authenticate",
  "proxy-authorization",
  "http2-settings",
]);

/** Fields named by a Connection header, which are hop-by-hop too. Framing and routing fields cannot be named. */
export function connectionNames(value: string): readonly string[] {
  if (value === "keep-alive" || value === "close") return NONE;
  const names: string[] = [];
  for (const part of value.split(",")) {
    const name = part.trim().toLowerCase();
    if (name !== "" && !NOT_REMOVABLE.has(name)) names.push(name);
  }
  return names;
}

const NONE: readonly string[] = [];

/**
 * Fields that a Connection header cannot remove: a client could otherwise make the gateway drop fields that the
 * workload relies on, such as identity or origin.
 */
const NOT_REMOVABLE: ReadonlySet<string> = new Set([
  "close",
  "keep-alive",
  "upgrade",
  "te",
  "host",
  "content-length",
  "content-type",
  "content-encoding",
  "transfer-encoding",
  "trailer",
  "date",
  "cache-control",
  "set-cookie",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
]);

/** A field's value without surrounding spaces and tabs. All other bytes are kept. */
export function trimField(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

const isBlank = (code: number): boolean => code === 32 || code === 9;
