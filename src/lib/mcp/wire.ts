/**
 * The vocabulary of the Model Context Protocol that both eras share: 2025-11-25 and earlier begin with `initialize` and
 * may have sessions; from 2026-07-28 on each request is independent and names its protocol version.
 */

export const STATELESS = "2026-07-28";
export const HANDSHAKE_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;
export const VERSIONS: readonly string[] = [STATELESS, ...HANDSHAKE_VERSIONS];

export const META = {
  /** Prefix of all `_meta` members that the protocol defines. */
  prefix: "io.modelcontextprotocol/",
  version: "io.modelcontextprotocol/protocolVersion",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  client: "io.modelcontextprotocol/clientInfo",
  server: "io.modelcontextprotocol/serverInfo",
  subscription: "io.modelcontextprotocol/subscriptionId",
} as const;

export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

export type RpcId = string | number | null;

export interface RpcRequest {
  jsonrpc?: "2.0";
  id?: RpcId;
  method: string;
  params?: Record<string, unknown>;
}

export interface RpcFailure {
  jsonrpc: "2.0";
  id: RpcId;
  error: { code: number; message: string; data?: unknown };
}

export type RpcAnswer = { jsonrpc: "2.0"; id: RpcId; result: unknown } | RpcFailure;

export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;
  /** HTTP status of an answer that consists of this error. Errors of a method itself are sent with 200. */
  readonly status: number;

  constructor(code: number, message: string, options: { data?: unknown; status?: number } = {}) {
    super(message);
    this.code = code;
    this.data = options.data;
    this.status = options.status ?? STATUS_OF[code] ?? 200;
  }
}

const STATUS_OF: Record<number, number> = {
  [RPC.methodNotFound]: 404,
  [RPC.unsupportedVersion]: 400,
  [RPC.headerMismatch]: 400,
  [RPC.invalidRequest]: 400,
  [RPC.parseError]: 400,
};

export const failure = (id: RpcId, { code, message, data }: RpcError): RpcFailure => ({
  jsonrpc: "2.0",
  id,
  error: { code, message, ...(data === undefined ? {} : { data }) },
});

export type HeaderOf = (name: string) => string | undefined;

/** The protocol version that a request declares, validated; undefined for the older versions. */
export function declaredVersion(header: HeaderOf, { method, params }: RpcRequest): string | undefined {
  const meta = metaOf(params);
  const inBody = meta?.[META.version];
  const inHeader = header("mcp-protocol-version");
  const declared = inBody ?? inHeader;
  if (typeof declared !== "string") return undefined;
  if (inBody !== undefined && inHeader !== undefined) mustMatch("MCP-Protocol-Version", inHeader, inBody);
  if (!VERSIONS.includes(declared)) throw unsupported(declared);
  if (declared !== STATELESS) return declared;
  for (const key of [META.version, META.clientCapabilities])
    if (meta?.[key] === undefined)
      throw new RpcError(RPC.invalidParams, `Every request needs ${key} in its _meta.`, { status: 400 });
  mustMatch("MCP-Protocol-Version", inHeader, inBody);
  mustMatch("Mcp-Method", header("mcp-method"), method);
  const member = NAMED_BY[method];
  if (member !== undefined) mustMatch("Mcp-Name", header("mcp-name"), params?.[member]);
  if (OF_SESSIONS.has(method))
    throw new RpcError(RPC.methodNotFound, `${STATELESS} has no ${method}: every request stands for itself.`);
  return declared;
}

/** Methods that the sessionless protocol has removed. */
const OF_SESSIONS = new Set(["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]);

/** Methods about one named thing, and the parameter with its name. */
const NAMED_BY: Record<string, string> = {
  ...{ "tools/call": "name", "prompts/get": "name", "resources/read": "uri" },
  ...{ "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId" },
};

/** Refuses a header that differs from the body: proxies route by these headers. */
export function mustMatch(field: string, given: string | undefined, value: unknown): void {
  if (given !== undefined && decoded(given) === value) return;
  const said = given === undefined ? "is missing" : `'${given.slice(0, 100)}' does not match the body`;
  throw new RpcError(RPC.headerMismatch, `Header mismatch: ${field} ${said}.`);
}

/** Decodes values that a header cannot carry, sent as `=?base64?…?=`; undefined for invalid base64. */
function decoded(value: string): string | undefined {
  const coded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1];
  if (coded === undefined) return value;
  const bytes = Buffer.from(coded, "base64");
  return bytes.toString("base64") === coded ? bytes.toString("utf8") : undefined;
}

export const unsupported = (requested: string): RpcError =>
  new RpcError(RPC.unsupportedVersion, `Protocol version ${requested.slice(0, 32)} is not supported.`, {
    data: { supported: VERSIONS, requested },
  });

export const metaOf = (params: Record<string, unknown> | undefined): Record<string, unknown> | undefined => {
  const meta = params?._meta;
  return typeof meta === "object" && meta !== null ? (meta as Record<string, unknown>) : undefined;
};

/** The requested older version, or the latest of them when the requested one is unknown. */
export const handshakeVersion = (asked: unknown): string =>
  HANDSHAKE_VERSIONS.find((version) => version === asked) ?? HANDSHAKE_VERSIONS[0];
