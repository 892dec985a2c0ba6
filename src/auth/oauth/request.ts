/**
 * OAuth requests as clients really send them, made into what the standard says: JSON bodies become forms, scopes are
 * checked as a whole, and a request without scopes asks for all that the role allows.
 */
import { IncomingMessage } from "node:http";
import { ALL_SCOPES } from "./access-tokens.ts";

/** Scopes that are about the sign-in itself and give no rights. */
export const PROTOCOL_SCOPES: ReadonlySet<string> = new Set(["openid", "offline_access"]);
const CLIENT_CREDENTIALS = "client_credentials";
/** More than the platform has scopes. */
const SCOPES_LENGTH_MAX = 8192;

/** A refusal in the shape that OAuth clients read. */
export class OauthError extends Error {
  readonly status: number;
  readonly body: { error: string; error_description: string };

  constructor(error: string, description: string, status = 400) {
    super(description);
    this.status = status;
    this.body = { error, error_description: description };
  }
}

/** JSON members as form fields. Anything but plain values has no meaning there. */
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

/** Unknown scopes are refused rather than dropped: a token must never mean something else than was asked for. */
export function settleScopes(form: URLSearchParams, known: ReadonlySet<string>, fill: boolean): void {
  const text = form.get("scope") ?? "";
  if (text.length > SCOPES_LENGTH_MAX) throw new OauthError("invalid_scope", "The list of scopes is too long.");
  const asked = text.split(" ").filter((word) => word !== "");
  const unknown = asked.find((scope) => !known.has(scope) && !PROTOCOL_SCOPES.has(scope));
  if (unknown !== undefined)
    throw new OauthError("invalid_scope", `'${unknown.slice(0, 64)}' is not a scope. See scopes_supported.`);
  if (fill && asked.every((scope) => PROTOCOL_SCOPES.has(scope))) form.set("scope", [...asked, ALL_SCOPES].join(" "));
}

export function settleTokenRequest(form: URLSearchParams, known: ReadonlySet<string>): void {
  settleScopes(form, known, form.get("grant_type") === CLIENT_CREDENTIALS);
}

/** The same request with another path and a form for a body, for a server that wants to read it itself. */
export function rewrite(original: IncomingMessage, url: string, form: URLSearchParams | null): IncomingMessage {
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
  request.headers = {
    ...headers,
    ...(body && { "content-type": "application/x-www-form-urlencoded", "content-length": String(body.length) }),
  };
  // Without this the end of the copy would look like a client that went away, and take the connection with it.
  request.complete = true;
  if (body) request.push(body);
  request.push(null);
  return request;
}
