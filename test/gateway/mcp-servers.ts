/** Several MCP servers of the official kit behind one gateway, and the official client. */
import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { ServerOptions } from "@modelcontextprotocol/sdk/server/index.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { type CallToolResult, CallToolResultSchema, type ClientCapabilities } from "@modelcontextprotocol/sdk/types.js";
import { listen, type TestGateway } from "./harness.ts";

export interface KitServer extends AsyncDisposable {
  port: number;
  /** Open sessions: the server object of each. */
  sessions: Map<string, McpServer>;
}

/** `register` gives each session its tools. */
export async function startKitServer(
  name: string,
  register: (server: McpServer) => void,
  options: ServerOptions = {},
): Promise<KitServer> {
  const sessions = new Map<string, McpServer>();
  const transports = new Map<string, StreamableHTTPServerTransport>();
  const http: Server = createServer(async (request, response) => {
    const id = request.headers["mcp-session-id"] as string | undefined;
    let transport = id === undefined ? undefined : transports.get(id);
    if (id !== undefined && transport === undefined) return void response.writeHead(404).end();
    if (transport === undefined) {
      const server = new McpServer({ name, version: "1.0.0" }, options);
      register(server);
      const fresh = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (session) => {
          transports.set(session, fresh);
          sessions.set(session, server);
        },
        onsessionclosed: (session) => {
          transports.delete(session);
          sessions.delete(session);
        },
      });
      await server.connect(fresh as Transport);
      transport = fresh;
    }
    await transport.handleRequest(request, response);
  });
  return {
    port: await listen(http),
    sessions,
    async [Symbol.asyncDispose]() {
      http.close();
      http.closeAllConnections();
    },
  };
}

export interface KitClient extends AsyncDisposable {
  client: Client;
  transport: StreamableHTTPClientTransport;
  names(): Promise<string[]>;
  say(tool: string, args?: Record<string, unknown>): Promise<string>;
}

export async function connectKit(
  { url }: Pick<TestGateway, "url">,
  name: string,
  { token = "good", capabilities = {} }: { token?: string; capabilities?: ClientCapabilities } = {},
  prepare: (client: Client) => void = () => {},
): Promise<KitClient> {
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/ws/functions/${name}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  const client = new Client({ name: "test", version: "1.0.0" }, { capabilities });
  prepare(client);
  await client.connect(transport as Transport);
  return {
    client,
    transport,
    names: async () => (await client.listTools()).tools.map((tool) => tool.name),
    async say(tool, args = {}) {
      const { content } = (await client.callTool(
        { name: tool, arguments: args },
        CallToolResultSchema,
      )) as CallToolResult;
      return content.map((part) => (part.type === "text" ? part.text : "")).join("");
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

export const said = (text: string): CallToolResult => ({ content: [{ type: "text", text }] });
