/**
 * Functions that the platform answers itself: MCP servers of third-party services, called with a connection's
 * credentials.
 */
import { answerMcp, type McpReply, type McpServer } from "../../lib/mcp/server.ts";
import type { HeaderOf } from "../../lib/mcp/wire.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { memoryServer } from "../hub/memory-server.ts";
import { MEMORY_SERVER, serverOf } from "../hub/servers.ts";
import { restServer } from "../integration/rest-server.ts";
import { type AccessTokens, createAccessTokens } from "../integration-connection/access-token.ts";
import { integrationConnection } from "../integration-connection/kind.ts";
import type { Platform } from "../port.ts";
import { workloadSpec } from "../workload/spec.ts";

export interface ServedRequest {
  workspace: string;
  uid: string;
  method: string;
  path: string;
  header: HeaderOf;
}

interface Served {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

const MCP_PATH = /^\/mcp\/?(\?|$)/;

/** The answer is null for an unknown path. */
export function createServedFunctions(deps: Platform) {
  const tokens = createAccessTokens(deps);
  return ({ workspace, uid, method, path, header }: ServedRequest) => {
    if (!MCP_PATH.test(path)) return null;
    return async (body: Buffer, signal: AbortSignal): Promise<Served> => {
      // The server has no sessions and no streams, so GET and DELETE are refused.
      if (method !== "POST") return { status: 405, headers: { allow: "POST" }, body: { error: "POST messages here." } };
      const found = await deps.store.resources.getByUid(workspace, uid);
      const answer = found && (await answererFor(found, deps, tokens));
      return answer ? answer({ header, body: body.toString("utf8") }, signal) : notServed();
    };
  };
}

type Answerer = (asked: { header: HeaderOf; body: string }, signal: AbortSignal) => Promise<McpReply>;

async function answererFor(resource: Resource, deps: Platform, tokens: AccessTokens): Promise<Answerer | null> {
  const { name, integration } = serverOf(resource, deps.settings) ?? {};
  const { version } = deps.settings;
  if (name === MEMORY_SERVER) return bound(memoryServer(version), { deps, owner: resource.uid });
  const server = integration === undefined ? null : restServer(integration, version);
  const connection = server && (await connectionTo(String(integration), resource, deps));
  return server && connection && bound(server, { deps, tokens, connection });
}

const bound =
  <Context>(server: McpServer<Context>, context: Context): Answerer =>
  (asked, signal) =>
    answerMcp(server, asked, context, signal);

/** The function's first connection to this service. */
async function connectionTo(
  integration: string,
  { workspace, spec }: Resource,
  deps: Platform,
): Promise<Resource | null> {
  for (const name of workloadSpec(spec).integrationConnections ?? []) {
    const place = { workspace, kind: integrationConnection.name, parent: "" };
    const connection = await deps.store.resources.get(place, name);
    if (connection && connection.deletedAt === null && connection.spec.integration === integration) return connection;
  }
  return null;
}

const notServed = (): Served => ({
  status: 404,
  body: { error: "The function has no connection to the service that its server is for." },
});
