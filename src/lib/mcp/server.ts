/**
 * An MCP server that consists of tools, as one function from a message to an answer. Every request stands for itself: no
 * session, no stream, one JSON answer. That is the whole protocol of 2026-07-28 and an allowed reading of the earlier
 * ones, so it serves clients that begin with `initialize` and clients that begin with `server/discover` or with nothing.
 */
import { mistakeIn, type Tool, toWire } from "./tool.ts";
import {
  declaredVersion,
  failure,
  type HeaderOf,
  handshakeVersion,
  META,
  RPC,
  type RpcAnswer,
  RpcError,
  type RpcId,
  type RpcRequest,
  STATELESS,
  VERSIONS,
} from "./wire.ts";

export interface McpServer<Context> {
  info: { name: string; version: string };
  instructions?: string;
  tools(context: Context): readonly Tool<Context>[];
  /** The text that a model gets when a tool has failed. */
  explain(error: unknown): string;
}

export interface McpReply {
  status: number;
  /** Null for an empty answer, as after a notification. */
  body: unknown;
}

const BATCH_MAX = 50;
/** How long clients may cache the discovery answer, which does not change while the server runs. */
const DISCOVERY_TTL_MS = 3_600_000;

export async function answerMcp<Context>(
  server: McpServer<Context>,
  { header, body }: { header: HeaderOf; body: string },
  context: Context,
  signal: AbortSignal,
): Promise<McpReply> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return refusedWith(new RpcError(RPC.parseError, "The body is not JSON."));
  }
  const batch = Array.isArray(parsed) ? parsed : [parsed];
  if (batch.length === 0 || batch.length > BATCH_MAX)
    return refusedWith(new RpcError(RPC.invalidRequest, `Send 1 to ${BATCH_MAX} messages.`));
  const asked = { server, header, context, signal };
  const answers = (await Promise.all(batch.map((message) => answer(asked, message)))).filter((one) => one !== null);
  const [first] = answers;
  if (!first) return { status: 202, body: null };
  return Array.isArray(parsed) ? { status: 200, body: answers.map(({ body }) => body) } : first;
}

const refusedWith = (error: RpcError, id: RpcId = null): McpReply => ({
  status: error.status,
  body: failure(id, error),
});

interface Asked<Context> {
  server: McpServer<Context>;
  header: HeaderOf;
  context: Context;
  signal: AbortSignal;
}

/** Returns null for notifications and for answers to requests, which this server never sends. */
async function answer<Context>(asked: Asked<Context>, message: unknown): Promise<McpReply | null> {
  const request = message as RpcRequest | null;
  if (typeof request !== "object" || request === null)
    return refusedWith(new RpcError(RPC.invalidRequest, "Not a request."));
  if (typeof request.method !== "string") {
    const isAnswer = "result" in request || "error" in request;
    return isAnswer ? null : refusedWith(new RpcError(RPC.invalidRequest, "A request needs a method."), request.id);
  }
  if (request.id === undefined) return null;
  try {
    const version = declaredVersion(asked.header, request);
    const result = await perform(asked, request);
    const { info } = asked.server;
    const complete =
      version === STATELESS ? { resultType: "complete", _meta: { [META.server]: info }, ...result } : result;
    return { status: 200, body: { jsonrpc: "2.0", id: request.id, result: complete } satisfies RpcAnswer };
  } catch (error) {
    const known = error instanceof RpcError ? error : new RpcError(RPC.internalError, asked.server.explain(error));
    return refusedWith(known, request.id);
  }
}

async function perform<Context>(
  asked: Asked<Context>,
  { method, params = {} }: RpcRequest,
): Promise<Record<string, unknown>> {
  const { info: serverInfo, instructions, tools } = asked.server;
  const about = {
    capabilities: { tools: { listChanged: false } },
    serverInfo,
    ...(instructions ? { instructions } : {}),
  };
  switch (method) {
    case "initialize":
      return { protocolVersion: handshakeVersion(params.protocolVersion), ...about };
    case "server/discover":
      return { supportedVersions: VERSIONS, ...about, ttlMs: DISCOVERY_TTL_MS, cacheScope: "private" };
    case "ping":
      return {};
    case "tools/list":
      return { tools: tools(asked.context).map(toWire), ttlMs: 0, cacheScope: "private" };
    case "tools/call":
      return callTool(asked, params);
    default:
      throw new RpcError(RPC.methodNotFound, `There is no method ${method.slice(0, 100)}.`);
  }
}

/** A tool that fails is an answer the model can read, not an error of the protocol. */
async function callTool<Context>(
  { server, context, signal }: Asked<Context>,
  params: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const tool = server.tools(context).find(({ name }) => name === params.name);
  if (!tool) throw new RpcError(RPC.invalidParams, `There is no tool ${JSON.stringify(params.name)?.slice(0, 100)}.`);
  const args = (params.arguments ?? {}) as Record<string, unknown>;
  const wrong =
    typeof args === "object" && !Array.isArray(args) ? mistakeIn(tool, args) : "arguments must be an object.";
  if (wrong) return refusal(wrong);
  try {
    const result = await tool.run(context, args, signal);
    return { content: [{ type: "text", text: JSON.stringify(result) }], structuredContent: result, isError: false };
  } catch (error) {
    return refusal(server.explain(error));
  }
}

const refusal = (sentence: string): Record<string, unknown> => ({
  content: [{ type: "text", text: sentence }],
  isError: true,
});
