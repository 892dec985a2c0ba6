/**
 * Which headers cross. Towards a provider only what is named goes: a caller's cookies, credentials and addresses are
 * nobody's business there. Towards the caller everything comes but what belongs to the connection or to the
 * provider's own site.
 */
import { GatewayError } from "../contract/gateway-errors.ts";
import { fieldOf } from "../http/fields.ts";
import { lowerName } from "../http/http1/header-name.ts";
import { PATH_DROPPED } from "../http/page-rules.ts";
import type { ClientCall } from "./client-call.ts";
import type { ProviderConnection } from "./model-records.ts";
import type { ProviderDeclaration } from "./providers/provider.ts";

const COMMON_CALLER_HEADERS = ["accept", "user-agent"];

/** Headers that all requests of a model share, computed once. */
export interface RequestFields {
  /** Lines that every request carries: the key, what the platform asks for. */
  fixed: string;
  /** Lower-case names that pass from the caller, and starts of such names. */
  passes: ReadonlySet<string>;
  prefixes: readonly string[];
  /** Sent unless the caller sends its own. */
  defaults: readonly [name: string, value: string][];
}

export function requestFields(
  provider: ProviderDeclaration,
  connection: ProviderConnection | null,
  organization: string | undefined,
): RequestFields {
  const { auth, organizationHeader, callerHeaders = [], headers = {} } = provider;
  const secret = secretOf(provider, connection);
  let fixed = secret ? line(auth.header, auth.scheme ? `${auth.scheme} ${secret}` : secret) : "";
  fixed += line("accept-encoding", "identity");
  if (organization && organizationHeader) {
    if (!VISIBLE.test(organization)) {
      throw new GatewayError("PROVIDER_NOT_CONFIGURED", "spec.runtime.organization of the model is not an identifier.");
    }
    fixed += line(organizationHeader, organization);
  }
  const own = [auth.header, "accept-encoding", "content-type", ...(organization ? [organizationHeader] : [])];
  const exact = [...COMMON_CALLER_HEADERS, ...callerHeaders].filter((name) => !name.endsWith("*"));
  return {
    fixed,
    passes: new Set(exact.filter((name) => !own.includes(name))),
    prefixes: callerHeaders.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1)),
    defaults: Object.entries(headers),
  };
}

const line = (name: string, value: string): string => `${name}: ${value}\r\n`;

/** The lines of one request's head behind the Host. */
export function requestLines(call: ClientCall, { fixed, passes, prefixes, defaults }: RequestFields): string {
  const { rawHeaders } = call;
  let lines = fixed;
  if (call.body.length > 0) lines += line("content-type", contentTypeOf(call));
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = lowerName(rawHeaders[i] as string);
    if (passes.has(name) || startsWithOne(name, prefixes)) lines += line(name, rawHeaders[i + 1] as string);
  }
  for (const [name, value] of defaults) {
    if (!passes.has(name) || fieldOf(rawHeaders, name) === undefined) lines += line(name, value);
  }
  return lines;
}

function startsWithOne(name: string, prefixes: readonly string[]): boolean {
  for (const prefix of prefixes) if (name.startsWith(prefix)) return true;
  return false;
}

/** A JSON object sent by a tool that names another type is still a JSON object. */
const contentTypeOf = (call: ClientCall): string =>
  call.members && !call.contentType.includes("json")
    ? "application/json"
    : call.contentType || "application/octet-stream";

export function secretOf(provider: ProviderDeclaration, connection: ProviderConnection | null): string | null {
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
  ...PATH_DROPPED,
  "server",
  "via",
  "www-authenticate",
]);

/** The answer's fields for the caller; lengths are set by whoever knows whether the body changes. */
export function passedFields(
  headers: readonly string[],
  dropped: ReadonlySet<string>,
  labels: readonly string[],
): string[] {
  const out: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = lowerName(headers[i] as string);
    if (DROPPED_RESPONSE_HEADERS.has(name) || dropped.has(name) || name.startsWith("access-control-")) continue;
    // Headers that the platform sets are not taken from the provider.
    if (fieldOf(labels, name) === undefined) out.push(headers[i] as string, headers[i + 1] as string);
  }
  for (const label of labels) out.push(label);
  return out;
}
