/**
 * Normalizes OAuth requests as clients really send them: JSON bodies become forms, scopes are checked as a whole, and a
 * request without scopes asks for all that the role allows.
 */
import { IncomingMessage } from "../../lib/network/node-http.ts";
import { ALL_SCOPES } from "./access-tokens.ts";
import type { Origin } from "./sign-in-audit.ts";

/** Scopes about the sign-in itself, which give no rights. */
export const PROTOCOL_SCOPES: ReadonlySet<string> = new Set(["openid", "offline_access"]);
/** Path of the pages on which a person takes the steps of a sign-in. */
export const INTERACTION = "/oauth/interaction";
const CLIENT_CREDENTIALS = "client_credentials";
/** Longest `scope` parameter: longer than all scopes of the platform together. */
const SCOPES_LENGTH_MAX = 8192;

/** An error in the format of OAuth (RFC 6749). */
export class OauthError extends Error {
  readonly status: number;
  readonly body: { error: string; error_description: string };

  constructor(error: string, description: string, status = 400) {
    super(description);
    this.status = status;
    this.body = { error, error_description: description };
  }
}

/** JSON members as form fields. Only plain values are allowed. */
export function formOf(body: unknown): URLSearchParams {
  if (body === undefined || body === null) return new URLSearchParams();
  if (typeof body === "string") return new URLSearchParams(body);
  if (typeof body !== "object" || Array.isArray(body))
    throw new OauthError("invalid_request", "The body must be a form or a JSON object.");
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(body)) {
    if (value === null || value === undefined) continue;
    if (typeof value === "object") throw new OauthError("invalid_request", `'${name}' must be a plain value.`);
    form.append(name, String(value));
  }
  return form;
}

/** Refuses unknown scopes instead of dropping them: a token must never mean something else than was requested. */
export function settleScopes(
  form: URLSearchParams,
  known: ReadonlySet<string>,
  /** Scopes to request when the form names none that gives rights. */
  fill: readonly string[] | null,
): void {
  const text = form.get("scope") ?? "";
  if (text.length > SCOPES_LENGTH_MAX) throw new OauthError("invalid_scope", "The list of scopes is too long.");
  const asked = text.split(" ").filter((word) => word !== "");
  const unknown = asked.find((scope) => !known.has(scope) && !PROTOCOL_SCOPES.has(scope));
  if (unknown !== undefined)
    throw new OauthError("invalid_scope", `'${unknown.slice(0, 64)}' is not a scope. See scopes_supported.`);
  if (fill && asked.every((scope) => PROTOCOL_SCOPES.has(scope))) form.set("scope", [...asked, ...fill].join(" "));
}

/** `ownScopes` returns the scopes of a machine; a request without scopes, or with `admin`, gets all of them. */
export async function settleTokenRequest(
  form: URLSearchParams,
  known: ReadonlySet<string>,
  ownScopes: () => Promise<readonly string[] | null>,
): Promise<void> {
  if (form.get("grant_type") !== CLIENT_CREDENTIALS) return settleScopes(form, known, null);
  settleScopes(form, known, [ALL_SCOPES]);
  const own = form.get("scope")?.split(" ").includes(ALL_SCOPES) ? await ownScopes() : null;
  if (own) form.set("scope", own.join(" "));
}

/** The command line has several client ids, and some tools omit the id when they renew a token. */
export function settleClient(form: URLSearchParams, names: readonly string[], isAuthenticated: boolean): void {
  const [own = ""] = names;
  const given = form.getAll("client_id");
  const isNameless = given.length === 0 && !isAuthenticated;
  if (isNameless ? form.get("grant_type") !== CLIENT_CREDENTIALS : names.includes(given[0] ?? "") && given.length === 1)
    form.set("client_id", own);
}

/**
 * Refuses sign-in pages to scripts of workloads, which must not act in the person's name: pages are for the browser's
 * own navigation, and forms for the pages themselves. Browsers omit Sec-Fetch on plain HTTP, so its absence proves
 * nothing; a form always sends its origin.
 */
export function requireNavigation({ headers, method }: IncomingMessage, pages: string): void {
  const { "sec-fetch-mode": mode, "sec-fetch-dest": dest, "sec-fetch-site": site, origin } = headers;
  const isScript = (mode ?? "navigate") !== "navigate" || (dest ?? "document") !== "document";
  if (isScript) throw new OauthError("invalid_request", "This page is for people, not for scripts.", 403);
  const isForm = method !== "GET" && method !== "HEAD";
  if (isForm && (origin !== pages || (site ?? "same-origin") !== "same-origin"))
    throw new OauthError("invalid_request", "This form was sent from somewhere else.", 403);
}

/**
 * The same request with another path and a form as its body, for oidc-provider, which reads the body itself. It is
 * always addressed to the issuer's own host, so that no generated link leads anywhere else.
 */
export function rewrite(
  original: IncomingMessage,
  { issuer, url, form, origin }: { issuer: string; url: string; form: URLSearchParams | null; origin: Origin },
): IncomingMessage {
  const request = new IncomingMessage(original.socket);
  const {
    "content-type": _type,
    "content-length": _length,
    "transfer-encoding": _encoding,
    ...headers
  } = original.headers;
  const body = form === null ? null : Buffer.from(form.toString());
  request.method = original.method ?? "GET";
  request.url = url;
  request.httpVersion = original.httpVersion;
  request.httpVersionMajor = original.httpVersionMajor;
  request.httpVersionMinor = original.httpVersionMinor;
  const { host, protocol } = new URL(issuer);
  request.headers = {
    ...headers,
    host,
    "x-forwarded-host": host,
    "x-forwarded-for": origin.address,
    "x-request-id": origin.requestId,
    "x-forwarded-proto": protocol.slice(0, -1),
    ...(body && { "content-type": "application/x-www-form-urlencoded", "content-length": String(body.length) }),
  };
  // Otherwise the end of the copy would look like an aborted request and close the connection.
  request.complete = true;
  if (body) request.push(body);
  request.push(null);
  return request;
}

/** The client id and secret of a machine, from the header or the form. */
export function clientOf(form: URLSearchParams, authorization: string | undefined): [id: string, secret: string] {
  const [, encoded] = /^basic +(\S+)$/i.exec(authorization ?? "") ?? [];
  if (encoded === undefined) return [form.get("client_id") ?? "", form.get("client_secret") ?? ""];
  const [id = "", secret = ""] = Buffer.from(encoded, "base64").toString("utf8").split(":");
  return [id, secret];
}
