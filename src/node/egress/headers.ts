/** Heads of requests and answers, as names and values in turn. */

/** Headers that belong to one connection and are not passed on. */
const HOP_BY_HOP = new Set([
  "connection",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "upgrade",
]);

export const FRAMING = /^(?:content-length|transfer-encoding)$/i;

/** The headers of one connection that go on to the other connection. */
export function passedOn(rawHeaders: readonly string[]): string[] {
  const kept: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? "";
    if (!HOP_BY_HOP.has(name.toLowerCase()) && !name.startsWith(":")) kept.push(name, rawHeaders[index + 1] ?? "");
  }
  return kept;
}

export const withoutHeaders = (headers: readonly string[], names: RegExp): string[] =>
  headers.filter((_, index) => !names.test(headers[index - (index % 2)] ?? ""));

export function headerOf(headers: readonly string[], name: string): string | undefined {
  const at = headers.findIndex((text, index) => index % 2 === 0 && text.toLowerCase() === name.toLowerCase());
  return at < 0 ? undefined : headers[at + 1];
}

export const headBytes = (headers: readonly string[]): number => headers.reduce((sum, { length }) => sum + length, 0);

/** Whether a body follows. Without these headers a server of HTTP/1.1 would read a body as the next request. */
export const isFramed = (headers: readonly string[]): boolean =>
  headers.some((name, index) => index % 2 === 0 && FRAMING.test(name));

/** HTTP/2 may cut the cookies of a request into several headers, which HTTP/1.1 does not know. */
export function withOneCookie(headers: readonly string[]): string[] {
  const cookies = headers.filter((_, index) => index % 2 === 1 && /^cookie$/i.test(headers[index - 1] ?? ""));
  return cookies.length < 2 ? [...headers] : [...withoutHeaders(headers, /^cookie$/i), "cookie", cookies.join("; ")];
}

/** The values of each name as a list, with names in small letters. */
export function asHeaders(raw: readonly string[]): Record<string, string[]> {
  const headers: Record<string, string[]> = Object.create(null);
  for (let index = 0; index < raw.length; index += 2) {
    const name = (raw[index] ?? "").toLowerCase();
    headers[name] = [...(headers[name] ?? []), raw[index + 1] ?? ""];
  }
  return headers;
}
