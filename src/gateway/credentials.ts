/**
 * Finds the platform's credentials in a request. The gateway removes them: a workload never sees a credential that is
 * valid for more than itself.
 */
import type { Downstream } from "../http/downstream.ts";
import { brandWords } from "../http/header-rules.ts";
import { offeredBearer, PROTOCOL_FIELD } from "../http/own-protocols.ts";

export interface Credential {
  token: string;
  /** Authorization may also carry the workload's own credential; the other places only carry the platform's. */
  from: "branded" | "authorization" | "protocol" | "query";
}

export interface CredentialNames {
  /** Words of the platform in the names of subprotocols. */
  protocol: string[];
  branded: string[];
  previewToken: string[];
}

/** Query name that browsers use where they cannot set headers: WebSockets. */
const QUERY_TOKEN = "token";
export const PREVIEW_QUERY_TOKEN = "bl_preview_token";

/** Longest credential; a longer text is not hashed and not accepted. */
const TOKEN_MAX = 8192;

export function credentialNames(brand: string): CredentialNames {
  const words = brandWords(brand);
  return {
    protocol: words,
    branded: words.map((word) => `x-${word}-authorization`),
    previewToken: words.map((word) => `x-${word}-preview-token`),
  };
}

/** The branded header wins: some clients send a dummy Authorization beside it. */
export function findCredential(names: CredentialNames, down: Downstream, path: string): Credential | null {
  for (const name of names.branded) {
    const value = down.header(name);
    if (value !== undefined) return { token: bearer(value) ?? value.slice(0, TOKEN_MAX), from: "branded" };
  }
  const token = bearerToken(down);
  if (token !== null) return { token, from: "authorization" };
  if (down.upgrade === null) return null;
  const offered = offeredBearer(down.header(PROTOCOL_FIELD), names.protocol);
  if (offered !== null) return { token: offered.slice(0, TOKEN_MAX), from: "protocol" };
  const query = queryValue(path, QUERY_TOKEN);
  return query === null ? null : { token: query, from: "query" };
}

/** The bearer token in Authorization, whether it is the platform's or the workload's. */
export function bearerToken(down: Downstream): string | null {
  const authorization = down.header("authorization");
  return authorization === undefined ? null : bearer(authorization);
}

function bearer(value: string): string | null {
  const match = /^Bearer +(\S+)\s*$/i.exec(value);
  return match?.[1] !== undefined && match[1].length <= TOKEN_MAX ? match[1] : null;
}

export interface PreviewToken {
  token: string;
  from: "header" | "query" | "cookie";
}

export function findPreviewToken(
  names: CredentialNames,
  down: Downstream,
  path: string,
  cookieName: string,
): PreviewToken | null {
  for (const name of names.previewToken) {
    const value = down.header(name);
    if (value !== undefined) return { token: value, from: "header" };
  }
  const query = queryValue(path, PREVIEW_QUERY_TOKEN);
  if (query !== null) return { token: query, from: "query" };
  const cookie = cookieValue(down.header("cookie"), cookieName);
  return cookie === null ? null : { token: cookie, from: "cookie" };
}

/** The path without platform tokens in its query; every other byte stays. */
export function withoutTokens(path: string, alsoQueryToken: boolean): string {
  const stripped = withoutQuery(path, PREVIEW_QUERY_TOKEN);
  return alsoQueryToken ? withoutQuery(stripped, QUERY_TOKEN) : stripped;
}

export function queryValue(path: string, name: string): string | null {
  const start = path.indexOf("?");
  if (start < 0 || !mayName(path, start, name)) return null;
  return new URLSearchParams(path.slice(start + 1)).get(name);
}

export function withoutQuery(path: string, name: string): string {
  const start = path.indexOf("?");
  if (start < 0 || !mayName(path, start, name)) return path;
  const kept = path
    .slice(start + 1)
    .split("&")
    .filter((pair) => nameOf(pair) !== name);
  return kept.length === 0 ? path.slice(0, start) : `${path.slice(0, start)}?${kept.join("&")}`;
}

/** A cheap test that is false for nearly every path: the query neither contains the name nor any percent-encoding. */
const mayName = (path: string, start: number, name: string): boolean =>
  path.includes(name, start) || path.includes("%", start);

/** The decoded name of a query parameter. */
function nameOf(pair: string): string {
  const end = pair.indexOf("=");
  const raw = end < 0 ? pair : pair.slice(0, end);
  if (!raw.includes("%")) return raw;
  const [[name] = [""]] = new URLSearchParams(raw);
  return name;
}

export function cookieValue(header: string | undefined, name: string): string | null {
  if (header === undefined || !header.includes(name)) return null;
  for (const pair of header.split(";")) {
    const trimmed = pair.trim();
    if (trimmed.startsWith(`${name}=`)) return trimmed.slice(name.length + 1);
  }
  return null;
}
