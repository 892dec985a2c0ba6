/** Functions that the platform answers itself: MCP servers of third-party services, with the credentials of a connection. */
import { answerMcp, type McpServer } from "../../lib/mcp-server.ts";
import type { HeaderOf } from "../../lib/mcp-wire.ts";
import type { Resource } from "../../store/resource.ts";
import { serverOf } from "../hub/servers.ts";
import { type RestContext, restServer } from "../integration/rest-server.ts";
import { createAccessTokens } from "../integration-connection/access-token.ts";
import { integrationConnection } from "../integration-connection/kind.ts";
import type { Deps } from "../port.ts";

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

/** Null for paths where there is nothing. */
export function createServedFunctions(deps: Deps) {
  const tokens = createAccessTokens(deps);
  return ({ workspace, uid, method, path, header }: ServedRequest) => {
    if (!MCP_PATH.test(path)) return null;
    return async (body: Buffer, signal: AbortSignal): Promise<Served> => {
      // No session and no stream: there is nothing to listen to and nothing to end.
      if (method !== "POST") return { status: 405, headers: { allow: "POST" }, body: { error: "POST messages here." } };
      const found = await deps.store.resources.getByUid(workspace, uid);
      const serving = found && (await servingOf(found, deps));
      if (!serving) return notServed();
      const { server, connection } = serving;
      return answerMcp(server, { header, body: body.toString("utf8") }, { deps, tokens, connection }, signal);
    };
  };
}

interface Serving {
  server: McpServer<RestContext>;
  connection: Resource;
}

async function servingOf(resource: Resource, deps: Deps): Promise<Serving | null> {
  const { integration } = serverOf(resource, deps.settings) ?? {};
  const names = (resource.spec.integrationConnections ?? []) as string[];
  for (const name of names) {
    const place = { workspace: resource.workspace, kind: integrationConnection.name, parent: "" };
    const connection = await deps.store.resources.get(place, name);
    if (!connection || connection.deletedAt !== null || connection.spec.integration !== integration) continue;
    const server = restServer(String(integration), deps.settings.version);
    return server && { server, connection };
  }
  return null;
}

const notServed = (): Served => ({
  status: 404,
  body: { error: "The function has no connection to the service that its server is for." },
});
