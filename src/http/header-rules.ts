/**
 * Which header fields the gateway removes and which it writes. All other names and values keep their order and
 * spelling.
 */

import { GatewayError } from "../contract/gateway-errors.ts";
import { cookieMark, isPlatformCookie } from "../contract/platform-cookies.ts";
import type { Proxies } from "../lib/network/proxies.ts";
import { connectionNames, HOP_BY_HOP, lowerName } from "./http1/header-name.ts";
import type { ResponseHead } from "./http1/response-parser.ts";
import { PROTOCOL_FIELD, withoutOwn } from "./own-protocols.ts";
import { isolatePage, type PageRules, type PathPages, pageRules, ruledValue } from "./page-rules.ts";
import { PEER_FIELD } from "./peer-field.ts";

export interface HeaderRules {
  /** The word in header names, capitalised: `X-{Brand}-Source`. */
  brand: string;
  /** Prefix of the platform's own cookies, which are neither sent to a workload nor accepted from one. */
  cookiePrefix: string;
  /** Words of the platform in names of header fields and WebSocket subprotocols. */
  words: readonly string[];
  /** Request fields that never reach a workload. */
  requestDrop: ReadonlySet<string>;
  /** Response fields that a workload may not send, because they speak for the platform. */
  responseDrop: ReadonlySet<string>;
  /** Rules for the workload's other response fields, by the form of its address. */
  pages: PageRules;
  /** Marks a response that the platform made itself. */
  source: readonly string[];
  /** Names of the response fields that state the request's time limits. */
  timeLimitNames: readonly string[];
  /** X-Forwarded-* of these are continued. Otherwise the client's are replaced. */
  proxies: Proxies;
}

/** Words in the names of branded headers: the configured brand, and `service`. */
export const brandWords = (brand: string): string[] => [...new Set([brand.toLowerCase(), "service"])];

const BRANDED_REQUEST_DROP = [
  "authorization",
  "preview-token",
  "subject-id",
  "subject-type",
  "auth-method",
  "fallback",
  "fallback-preview",
  "fallback-domain",
  "source",
];
const FORWARDED = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-prefix"];
const OWN_WRITING = [
  PEER_FIELD,
  ...FORWARDED,
  "x-forwarded-port",
  "x-real-ip",
  "x-subject-id",
  "x-subject-type",
  "x-request-id",
];

export function headerRules(options: { brand: string; proxies: Proxies; pathPages: PathPages }): HeaderRules {
  const words = brandWords(options.brand);
  const brand = capitalised(options.brand);
  const responseDrop = new Set([
    ...HOP_BY_HOP,
    "x-request-id",
    ...words.flatMap((word) => [`x-${word}-source`, `x-${word}-time-limit`]),
  ]);
  return {
    ...{ brand, words },
    cookiePrefix: cookieMark(options.brand),
    requestDrop: new Set([
      ...HOP_BY_HOP,
      ...OWN_WRITING,
      "content-length",
      ...words.flatMap((word) => BRANDED_REQUEST_DROP.map((name) => `x-${word}-${name}`)),
    ]),
    responseDrop,
    pages: pageRules({ ...options, drop: responseDrop }),
    timeLimitNames: words.map((word) => `X-${capitalised(word)}-Time-Limit`),
    source: words.flatMap((word) => [`X-${capitalised(word)}-Source`, "platform"]),
    proxies: options.proxies,
  };
}

export const capitalised = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** Fields that the owner of a preview set: validated and ready to be written. */
export interface FixedHeaders {
  names: ReadonlySet<string>;
  /** Names and values alternating. */
  list: readonly string[];
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]{0,8192}$/;
/** Framing and connection fields are the gateway's, whatever a preview asks for. */
const NOT_SETTABLE = new Set([...HOP_BY_HOP, "content-length", "trailer", "expect"]);

/** Leaves out invalid names, values with line breaks, and framing fields. */
export function fixedHeaders(given: Record<string, string> | undefined): FixedHeaders | null {
  const list: string[] = [];
  for (const [name, value] of Object.entries(given ?? {})) {
    if (TOKEN.test(name) && VALUE.test(value) && !NOT_SETTABLE.has(name.toLowerCase())) list.push(name, value);
  }
  if (list.length === 0) return null;
  return { list, names: new Set(list.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())) };
}

export interface RequestHeadInput {
  method: string;
  /** Raw path as the workload sees it. */
  path: string;
  /** As the client sent them. */
  rawHeaders: readonly string[];
  /** The host of requests that have no Host field, as in HTTP/2. */
  host: string | undefined;
  framing: "none" | "length" | "chunked";
  contentLength: number;
  /** True when Authorization carried a credential of the platform. */
  dropAuthorization: boolean;
  remoteAddress: string;
  /** False for a connection from inside a workload, which is not the operator's proxy. */
  fromNetwork: boolean;
  secure: boolean;
  /** The part of the path before the workload's own; empty for host addresses. */
  prefix: string;
  requestId: string;
  /** Header lines with the caller's identity, for daemons that keep an audit trail. */
  identity: string;
  fixed: FixedHeaders | null;
  /** Protocol to switch to; null for an ordinary request. */
  upgrade: string | null;
}

export function requestHead(rules: HeaderRules, input: RequestHeadInput, listed: readonly string[] = NONE): string {
  const { rawHeaders, fixed } = input;
  let head = `${input.method} ${input.path} HTTP/1.1\r\n`;
  let host: string | null = null;
  let hasHostField = false;
  let passedBy = "";
  let forwardedProto = input.secure ? "https" : "http";
  let forwardedHost: string | null = null;
  let trailersWelcome = false;

  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] as string;
    const name = lowerName(raw);
    let value = rawHeaders[i + 1] as string;
    if (rules.requestDrop.has(name)) {
      if (name === "te") trailersWelcome = trailersWelcome || /(?:^|,)\s*trailers\s*(?:[,;]|$)/i.test(value);
      else if (name === "connection") {
        // Rare: earlier fields may be listed too, so the loop starts again with the listed names.
        if (listed === NONE && connectionNames(value).length > 0)
          return requestHead(rules, input, allListed(rawHeaders));
      } else if (!input.fromNetwork || !rules.proxies.include(input.remoteAddress)) continue;
      else if (name === "x-forwarded-for") passedBy += `${value}, `;
      else if (name === "x-forwarded-proto") forwardedProto = value;
      else if (name === "x-forwarded-host") forwardedHost = value;
      continue;
    }
    if (listed.includes(name) || name.charCodeAt(0) === PSEUDO) continue;
    if (name === "host") {
      if (hasHostField) throw new GatewayError("BAD_REQUEST", "A request has exactly one Host.");
      host = value;
      hasHostField = true;
    } else if (name === "authorization") {
      if (input.dropAuthorization) continue;
    } else if (name === PROTOCOL_FIELD) {
      value = withoutOwn(value, rules.words);
      if (value === "") continue;
    } else if (name === "cookie" && value.toLowerCase().includes(rules.cookiePrefix)) {
      value = withoutCookies(value, rules.cookiePrefix);
      if (value === "") continue;
    }
    if (fixed?.names.has(name)) continue;
    head += `${raw}: ${value}\r\n`;
  }
  if (fixed) for (let i = 0; i < fixed.list.length; i += 2) head += `${fixed.list[i]}: ${fixed.list[i + 1]}\r\n`;
  host ??= input.host ?? null;
  if (!hasHostField && !fixed?.names.has("host")) head += `Host: ${host ?? "localhost"}\r\n`;
  head += `X-Forwarded-For: ${passedBy}${input.remoteAddress}\r\nX-Forwarded-Proto: ${forwardedProto}\r\n`;
  forwardedHost ??= host;
  if (forwardedHost !== null) head += `X-Forwarded-Host: ${forwardedHost}\r\n`;
  if (input.prefix !== "") head += `X-Forwarded-Prefix: ${input.prefix}\r\n`;
  head += `X-Request-Id: ${input.requestId}\r\n${input.identity}`;
  if (input.framing === "length") head += `Content-Length: ${input.contentLength}\r\n`;
  else if (input.framing === "chunked") head += "Transfer-Encoding: chunked\r\n";
  if (input.upgrade !== null) return `${head}Upgrade: ${input.upgrade}\r\nConnection: Upgrade\r\n\r\n`;
  return trailersWelcome ? `${head}TE: trailers\r\nConnection: TE\r\n\r\n` : `${head}\r\n`;
}

/** Names of HTTP/2 pseudo fields start with a colon. */
const PSEUDO = 58;

function withoutCookies(value: string, mark: string): string {
  return value
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => !isPlatformCookie(pair, mark))
    .join("; ");
}

/** Additions to the workload's own response fields. */
export interface ResponseExtras {
  fixed: FixedHeaders | null;
  /** A Set-Cookie value of the gateway. */
  cookie: string | null;
  /** The workload's path address where it shares the platform's origin; "" on its own host. */
  prefix: string;
  /** The platform's request id, sent with every answer; replaces an id of the workload. */
  requestId: string;
  /** Further fields of the platform, names and values alternating. */
  told: readonly string[];
}

/** The response fields that the client gets: the workload's, the preview owner's and the gateway's. */
export function responseHeaders(
  rules: HeaderRules,
  head: ResponseHead,
  extras: ResponseExtras,
  listed: readonly string[] = NONE,
): string[] {
  const given = head.headers;
  const { fixed, cookie, prefix } = extras;
  const { pages } = rules;
  const fields = prefix === "" ? pages.host : pages.path;
  const out: string[] = [];
  let types: string[] | null = null;
  for (let i = 0; i < given.length; i += 2) {
    const name = lowerName(given[i] as string);
    let value = given[i + 1] as string;
    if (name === "connection" && listed === NONE && connectionNames(value).length > 0) {
      return responseHeaders(rules, head, extras, allListed(given));
    }
    const rule = fields.get(name);
    if (rule === "drop" || listed.includes(name) || fixed?.names.has(name)) continue;
    if (rule !== undefined) {
      const ruled = ruledValue(pages, rule, value, prefix);
      if (ruled === null) continue;
      value = ruled;
      if (rule === "type") types = types === null ? [value] : [...types, value];
    }
    // A 204 has no body; with a Content-Length, a reader might wait for one.
    if (name === "content-length" && head.status === 204) continue;
    out.push(given[i] as string, value);
  }
  // Fields of a preview's owner are subject to the same rules as the workload's.
  for (let i = 0; fixed !== null && i < fixed.list.length; i += 2) {
    const rule = fields.get(lowerName(fixed.list[i] as string));
    const value = fixed.list[i + 1] as string;
    const ruled = rule === undefined ? value : ruledValue(pages, rule, value, prefix);
    if (ruled === null) continue;
    if (rule === "type") types = [value];
    out.push(fixed.list[i] as string, ruled);
  }
  if (prefix !== "") isolatePage(pages, head.status, types ?? NONE, out);
  if (cookie !== null) out.push("Set-Cookie", cookie);
  out.push("X-Request-Id", extras.requestId);
  for (const word of extras.told) out.push(word);
  return out;
}

/** The fields that travel further than one connection, as they are. */
export function endToEnd(headers: readonly string[]): string[] {
  const listed = allListed(headers);
  const out: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = lowerName(headers[i] as string);
    if (name.charCodeAt(0) === PSEUDO || HOP_BY_HOP.has(name) || listed.includes(name)) continue;
    out.push(headers[i] as string, headers[i + 1] as string);
  }
  return out;
}

const NONE: readonly string[] = [];

function allListed(headers: readonly string[]): string[] {
  const names: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    if (lowerName(headers[i] as string) === "connection") names.push(...connectionNames(headers[i + 1] as string));
  }
  return names;
}

/** Fields that affect framing or routing are not allowed in trailers (RFC 9110, 6.5.1). */
const TRAILER_FORBIDDEN = new Set([
  ...HOP_BY_HOP,
  "content-length",
  "content-encoding",
  "content-type",
  "content-range",
  "trailer",
  "host",
  "authorization",
  "set-cookie",
  "cookie",
]);

/** The trailers that a client or a workload may send. */
export function safeTrailers(rules: HeaderRules, trailers: readonly string[]): string[] {
  const out: string[] = [];
  for (let i = 0; i < trailers.length; i += 2) {
    const name = lowerName(trailers[i] as string);
    if (TRAILER_FORBIDDEN.has(name) || rules.requestDrop.has(name) || rules.responseDrop.has(name)) continue;
    out.push(trailers[i] as string, trailers[i + 1] as string);
  }
  return out;
}
