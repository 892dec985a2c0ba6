/**
 * /mcp: the Model Context Protocol over streamable HTTP. Every request stands for itself: no session, no stream, one JSON
 * answer. That is the whole protocol of 2026-07-28 and an allowed reading of the earlier ones, so one endpoint serves
 * clients that begin with `initialize` and clients that begin with `server/discover` or with nothing at all.
 */
import { toApiError } from "./api-error.ts";
import { providerOf } from "./codegen.ts";
import type { Daemon } from "./daemon.ts";
import { type Call, readBody, sendJson } from "./http-call.ts";
import { mistakeIn, type Tool, toWire } from "./mcp-tool.ts";
import { CODEGEN_TOOLS } from "./mcp-tools-codegen.ts";
import { FILE_TOOLS } from "./mcp-tools-files.ts";
import { PROCESS_TOOLS } from "./mcp-tools-process.ts";
import { VERSION } from "./version.ts";

const STATELESS = "2026-07-28";
const VERSIONS = [STATELESS, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const META_VERSION = "io.modelcontextprotocol/protocolVersion";
const META_SERVER = "io.modelcontextprotocol/serverInfo";
const SERVER = { name: "Sandbox API Server", version: VERSION };
const BATCH_MAX = 50;
const DISCOVERY_TTL_MS = 3_600_000;

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const UNSUPPORTED_VERSION = -32022;

const TOOLS: Tool[] = [...PROCESS_TOOLS, ...FILE_TOOLS, ...CODEGEN_TOOLS];

interface RpcRequest {
  id?: string | number | null;
  method: string;
  params?: Record<string, unknown>;
}

class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export async function postMcp(call: Call): Promise<void> {
  let parsed: unknown;
  try {
    parsed = JSON.parse((await readBody(call)).toString("utf8"));
  } catch {
    return sendJson(call.res, 400, failure(null, new RpcError(PARSE_ERROR, "The body is not JSON.")));
  }
  const batch = Array.isArray(parsed) ? parsed : [parsed];
  if (batch.length === 0 || batch.length > BATCH_MAX) {
    return sendJson(call.res, 400, failure(null, new RpcError(INVALID_REQUEST, `Send 1 to ${BATCH_MAX} messages.`)));
  }
  const answers = (await Promise.all(batch.map((message) => answer(call, message)))).filter((one) => one !== null);
  if (answers.length === 0) return void call.res.writeHead(202).end();
  const [first] = answers;
  const status = !Array.isArray(parsed) && first && "error" in first ? httpStatusOf(first.error) : 200;
  sendJson(call.res, status, Array.isArray(parsed) ? answers : first);
}

type Answer = { jsonrpc: "2.0"; id: unknown; result: unknown } | ReturnType<typeof failure>;

/** Null for notifications and for answers to questions we never ask. */
async function answer(call: Call, message: unknown): Promise<Answer | null> {
  const request = message as RpcRequest | null;
  if (typeof request !== "object" || request === null)
    return failure(null, new RpcError(INVALID_REQUEST, "Not a request."));
  if (typeof request.method !== "string") {
    const isAnswer = "result" in request || "error" in request;
    return isAnswer ? null : failure(request.id ?? null, new RpcError(INVALID_REQUEST, "A request needs a method."));
  }
  if (request.id === undefined) return null;
  try {
    const version = versionOf(call, request);
    const result = await perform(call, request);
    const complete =
      version === STATELESS ? { resultType: "complete", _meta: { [META_SERVER]: SERVER }, ...result } : result;
    return { jsonrpc: "2.0", id: request.id, result: complete };
  } catch (error) {
    const known = error instanceof RpcError ? error : new RpcError(-32603, toApiError(error).message);
    return failure(request.id, known);
  }
}

/** The version a request declares; undeclared means one of the older ones. */
function versionOf(call: Call, { params }: RpcRequest): string | undefined {
  const meta = params?._meta as Record<string, unknown> | undefined;
  const declared = meta?.[META_VERSION] ?? call.req.headers["mcp-protocol-version"];
  if (typeof declared !== "string") return undefined;
  if (VERSIONS.includes(declared)) return declared;
  throw new RpcError(UNSUPPORTED_VERSION, `Protocol version ${declared} is not supported.`, {
    supported: VERSIONS,
    requested: declared,
  });
}

async function perform(call: Call, { method, params = {} }: RpcRequest): Promise<Record<string, unknown>> {
  const capabilities = { tools: { listChanged: false } };
  switch (method) {
    case "initialize": {
      const asked = String(params.protocolVersion ?? "");
      const older = VERSIONS.filter((version) => version !== STATELESS);
      return { protocolVersion: older.includes(asked) ? asked : older[0], capabilities, serverInfo: SERVER };
    }
    case "server/discover":
      return {
        supportedVersions: VERSIONS,
        capabilities,
        serverInfo: SERVER,
        ttlMs: DISCOVERY_TTL_MS,
        cacheScope: "private",
      };
    case "ping":
      return {};
    case "tools/list":
      return { tools: offered(call.daemon).map(toWire), ttlMs: 0, cacheScope: "private" };
    case "tools/call":
      return callTool(call, params);
    default:
      throw new RpcError(METHOD_NOT_FOUND, `There is no method ${method}.`);
  }
}

/** A tool that fails is an answer the model can read, not an error of the protocol. */
async function callTool(call: Call, params: Record<string, unknown>): Promise<Record<string, unknown>> {
  const tool = offered(call.daemon).find(({ name }) => name === params.name);
  if (!tool) throw new RpcError(INVALID_PARAMS, `There is no tool ${JSON.stringify(params.name)}.`);
  const args = (params.arguments ?? {}) as Record<string, unknown>;
  const wrong =
    typeof args === "object" && !Array.isArray(args) ? mistakeIn(tool, args) : "arguments must be an object.";
  if (wrong) return refusal(wrong);
  try {
    const result = await tool.run(call.daemon, args, call.signal);
    return { content: [{ type: "text", text: JSON.stringify(result) }], structuredContent: result, isError: false };
  } catch (error) {
    return refusal(toApiError(error).message);
  }
}

const offered = (daemon: Daemon): Tool[] => {
  const hasProvider = providerOf(daemon.environment) !== undefined;
  return TOOLS.filter((tool) => hasProvider || !tool.needsProvider);
};

const refusal = (sentence: string): Record<string, unknown> => ({
  content: [{ type: "text", text: sentence }],
  isError: true,
});

const failure = (id: unknown, { code, message, data }: RpcError) => ({
  jsonrpc: "2.0" as const,
  id,
  error: { code, message, ...(data === undefined ? {} : { data }) },
});

const httpStatusOf = ({ code }: { code: number }): number =>
  code === METHOD_NOT_FOUND ? 404 : code === UNSUPPORTED_VERSION || code === INVALID_REQUEST ? 400 : 200;
