/** MCP servers of a test on this machine's own driver, reached through the gateway with the official client. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
  type StreamableHTTPClientTransportOptions as ModernTransportOptions,
} from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  StreamableHTTPClientTransport,
  type StreamableHTTPClientTransportOptions,
} from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { type CallToolResult, CallToolResultSchema, type ClientCapabilities } from "@modelcontextprotocol/sdk/types.js";
import { type Answer, startTestPlatform, type TestPlatform } from "./platform.ts";
import { projectArchive } from "./project-archive.ts";

const LOOK_MS = 50;
const PATIENCE_MS = 120_000;

export interface Connected extends AsyncDisposable {
  client: Client;
  transport: StreamableHTTPClientTransport;
  /** Text of a tool's answer. */
  say(tool: string, args?: Record<string, unknown>): Promise<string>;
}

export interface McpSuite {
  platform(): TestPlatform;
  start(config?: Record<string, string>): Promise<void>;
  stop(): Promise<void>;
  /** Creates a function, sends its files when there are some, and waits until it is deployed. */
  deploy(name: string, spec: object, files?: Record<string, string>): Promise<Answer["body"]>;
  reaches(name: string, until: (server: Answer["body"]) => boolean): Promise<Answer["body"]>;
  connect(name: string, options?: StreamableHTTPClientTransportOptions & { workspace?: string }): Promise<Connected>;
  /** The same with the official client of the sessionless protocol. */
  connectModern(name: string): Promise<ConnectedModern>;
  address(name: string): URL;
}

export function mcpSuite(): McpSuite {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-mcp-"));
  let running: TestPlatform;
  const address = (name: string, workspace = "main"): URL =>
    new URL(`${running.url}/${workspace}/functions/${name}/mcp`);
  const reaches: McpSuite["reaches"] = async (name, until) => {
    const giveUp = Date.now() + PATIENCE_MS;
    for (;;) {
      const { body } = await running.call("GET", `/functions/${name}`);
      if (until(body)) return body;
      if (Date.now() > giveUp) throw new Error(`still ${body.status}: ${JSON.stringify(body.events)}`);
      await pause(LOOK_MS);
    }
  };
  return {
    platform: () => running,
    async start(config = {}) {
      running = await startTestPlatform({ driver: "real", dataDir, config });
    },
    async stop() {
      for (const { metadata } of (await running.call("GET", "/functions")).body.data)
        await running.call("DELETE", `/functions/${metadata.name}`);
      await running.stop();
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
    },
    async deploy(name, spec, files) {
      const body = { metadata: { name }, spec };
      const made = await running.call("POST", `/functions${files ? "?upload=true" : ""}`, { body });
      assert.equal(made.status, 200, JSON.stringify(made.body));
      if (files) {
        const url = made.headers.get("x-service-upload-url") ?? "";
        assert.equal((await fetch(url, { method: "PUT", body: projectArchive(files) })).status, 200);
      }
      return reaches(name, ({ status, events }) => {
        assert.notEqual(status, "FAILED", JSON.stringify(events));
        return status === "DEPLOYED";
      });
    },
    reaches,
    address,
    connect: (name, { workspace, ...options } = {}) =>
      connectMcp(address(name, workspace), {
        ...(options.authProvider ? {} : { requestInit: { headers: { authorization: `Bearer ${running.apiKey}` } } }),
        ...options,
      }),
    connectModern: (name) =>
      connectModern(address(name), { requestInit: { headers: { authorization: `Bearer ${running.apiKey}` } } }),
  };
}

export interface ConnectedModern extends AsyncDisposable {
  client: ModernClient;
  say: Connected["say"];
}

/** The official client of the sessionless protocol, which refuses to fall back to an older one. */
export async function connectModern(url: URL, options: ModernTransportOptions = {}): Promise<ConnectedModern> {
  const client = new ModernClient(
    { name: "test", version: "1.0.0" },
    { versionNegotiation: { mode: { pin: "2026-07-28" } } },
  );
  await client.connect(new ModernTransport(url, options));
  return {
    client,
    async say(name, args = {}) {
      const { content } = await client.callTool({ name, arguments: args });
      return content.map((part) => (part.type === "text" ? part.text : "")).join("");
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}

export async function connectMcp(
  url: URL,
  options: StreamableHTTPClientTransportOptions,
  capabilities: ClientCapabilities = {},
): Promise<Connected> {
  const transport = new StreamableHTTPClientTransport(url, options);
  const client = new Client({ name: "test", version: "1.0.0" }, { capabilities });
  await client.connect(transport as Transport);
  return {
    client,
    transport,
    async say(name, args = {}) {
      const { content } = (await client.callTool({ name, arguments: args }, CallToolResultSchema)) as CallToolResult;
      return content.map((part) => (part.type === "text" ? part.text : "")).join("");
    },
    [Symbol.asyncDispose]: () => client.close(),
  };
}
