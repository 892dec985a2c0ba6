/**
 * Which headers cross. Towards a provider only what is named goes: a caller's cookies, credentials and addresses are
 * nobody's business there. Towards the caller everything comes but what belongs to the connection or to the
 * provider's own site.
 */
import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../../contract/gateway-errors.ts";
import type { ProviderDeclaration } from "../providers/provider.ts";
import type { ClientCall } from "./client-call.ts";
import type { Connection } from "./model-records.ts";

const COMMON_CALLER_HEADERS = ["accept", "user-agent"];

/** As a flat list of names and values, the form undici takes without copying. */
export function requestHeaders(
  call: ClientCall,
  provider: ProviderDeclaration,
  connection: Connection | null,
  organization: string | undefined,
): string[] {
  const out: string[] = [];
  const sent = new Set<string>();
  const put = (name: string, value: string): void => {
    out.push(name, value);
    sent.add(name);
  };
  const secret = secretOf(provider, connection);
  if (secret) put(provider.auth.header, provider.auth.scheme ? `${provider.auth.scheme} ${secret}` : secret);
  put("accept-encoding", "identity");
  if (call.body.length > 0) put("content-type", contentTypeOf(call));
  if (organization && provider.organizationHeader) put(provider.organizationHeader, organization);
  for (const name of COMMON_CALLER_HEADERS) forward(call.headers, name, put);
  for (const pattern of provider.callerHeaders ?? []) {
    if (!pattern.endsWith("*")) {
      if (!sent.has(pattern)) forward(call.headers, pattern, put);
      continue;
    }
    const start = pattern.slice(0, -1);
    for (const name of Object.keys(call.headers)) if (name.startsWith(start)) forward(call.headers, name, put);
  }
  for (const [name, value] of Object.entries(provider.headers ?? {})) if (!sent.has(name)) put(name, value);
  return out;
}

function forward(headers: IncomingHttpHeaders, name: string, put: (name: string, value: string) => void): void {
  const value = headers[name];
  if (typeof value === "string") put(name, value);
}

/** A JSON object sent by a tool that names another type is still a JSON object. */
const contentTypeOf = (call: ClientCall): string =>
  call.members && !call.contentType.includes("json")
    ? "application/json"
    : call.contentType || "application/octet-stream";

export function secretOf(provider: ProviderDeclaration, connection: Connection | null): string | null {
  for (const name of provider.secretNames) {
    const value = connection?.secret[name]?.trim();
    if (value && VISIBLE.test(value)) return value;
  }
  if (provider.secretOptional) return null;
  const where = connection ? `connection ${connection.name}` : "a connection";
  throw new GatewayError(
    "PROVIDER_NOT_CONFIGURED",
    `${provider.title} needs a key: store it in spec.secret.${provider.secretNames[0]} of ${where}.`,
  );
}

/** A line break in a stored key would be a header of somebody's choosing. */
const VISIBLE = /^[\x21-\x7e]+$/;

const DROPPED_RESPONSE_HEADERS = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "content-encoding",
  "content-length",
  "set-cookie",
  "alt-svc",
  "strict-transport-security",
  "nel",
  "report-to",
  "server",
  "via",
  "www-authenticate",
]);

export type HeaderBag = Record<string, string | string[]>;

/** The answer's headers for the caller; lengths are set by whoever knows whether the body changes. */
export function responseHeaders(headers: IncomingHttpHeaders): HeaderBag {
  const out: HeaderBag = {};
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || DROPPED_RESPONSE_HEADERS.has(name) || name.startsWith("access-control-")) continue;
    out[name] = value;
  }
  return out;
}
