/** One MCP server over several functions, with official clients and servers around the gateway. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import {
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { createMcpHandler } from "@modelcontextprotocol/server";
import type { Workload } from "../../src/gateway/deps.ts";
import { everythingServer } from "../mcp/everything-server.ts";
import { fetchListener } from "../mcp/fetch-listener.ts";
import { dial, inEveryLane, listen, type Start, startTestGateway, type TestGateway } from "./harness.ts";
import { connectKit, type KitServer, said, startKitServer } from "./mcp-servers.ts";

/** Each session has tools that say whose they are, count, ask the client, and add a tool. */
const toolsOf =
  (name: string) =>
  (server: McpServer): void => {
    let calls = 0;
    server.registerTool("who", { description: `Tells that ${name} answers` }, () => {
      calls += 1;
      return said(`${name} ${calls}`);
    });
    server.registerTool("ask", { description: "Asks the client" }, async () => {
      const { content } = await server.server.elicitInput({
        message: name,
        requestedSchema: { type: "object", properties: { word: { type: "string" } } },
      });
      return said(`${name} heard ${content?.word}`);
    });
    server.registerTool("grow", { description: "Adds a tool" }, () => {
      server.registerTool("late", {}, () => said("late"));
      return said("grown");
    });
  };

interface Fleet extends AsyncDisposable {
  gateway: TestGateway;
  one: KitServer;
  two: KitServer;
}

async function startFleet(start: Start, more: Partial<Workload> = {}, two?: Partial<Workload>): Promise<Fleet> {
  const servers = {
    one: await startKitServer("one", toolsOf("one")),
    two: await startKitServer("two", toolsOf("two")),
  };
  const workloads: Partial<Workload>[] = [
    { kind: "function", uid: "one", name: "one" },
    { kind: "function", uid: "two", name: "two", ...two },
    {
      ...{ kind: "function", uid: "all", name: "all", door: "platform" },
      servers: [
        { name: "one", prefix: "a", allow: null },
        { name: "two", prefix: "b", allow: ["who", "ask", "test_*"] },
      ],
      ...more,
    },
  ];
  const gateway = await start({
    upstream: 0,
    workloads,
    deps: { dial: ({ key }) => dial(key.startsWith("one") ? servers.one.port : servers.two.port) },
  });
  return {
    gateway,
    ...servers,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      for (const server of Object.values(servers)) await server[Symbol.asyncDispose]();
    },
  };
}

inEveryLane(
  "tools of several functions are served under prefixed names, each client with sessions of its own",
  async (start) => {
    await using fleet = await startFleet(start);
    await using first = await connectKit(fleet.gateway, "all");
    await using second = await connectKit(fleet.gateway, "all");
    assert.deepEqual(await first.names(), ["a_who", "a_ask", "a_grow", "b_who", "b_ask"]);
    assert.deepEqual(
      [await first.say("a_who"), await first.say("a_who"), await first.say("b_who")],
      ["one 1", "one 2", "two 1"],
    );
    assert.equal(await second.say("a_who"), "one 1");
    assert.deepEqual([fleet.one.sessions.size, fleet.two.sessions.size], [2, 2]);
    await assert.rejects(first.say("b_grow"), /There is no tool "b_grow"/);
    await assert.rejects(first.say("c_who"), /There is no tool "c_who"/);
    await first.transport.terminateSession();
    assert.deepEqual([fleet.one.sessions.size, fleet.two.sessions.size], [1, 1]);
  },
);

inEveryLane("questions and notifications of the servers find their client, and answers their server", async (start) => {
  await using fleet = await startFleet(start);
  const heard: string[] = [];
  const told = Promise.withResolvers<void>();
  const other = Promise.withResolvers<string>();
  await using client = await connectKit(fleet.gateway, "all", { capabilities: { elicitation: {} } }, (kit) => {
    kit.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      heard.push(params.message);
      return { action: "accept", content: { word: `hi ${params.message}` } };
    });
    kit.setNotificationHandler(ToolListChangedNotificationSchema, () => told.resolve());
  });
  await using bystander = await connectKit(fleet.gateway, "all", {}, (kit) => {
    kit.setNotificationHandler(ToolListChangedNotificationSchema, () => other.resolve("told"));
    kit.setNotificationHandler(LoggingMessageNotificationSchema, () => other.resolve("told"));
  });
  // Both servers ask with the same id of their own.
  const answers = await Promise.all([client.say("a_ask"), client.say("b_ask")]);
  assert.deepEqual(answers, ["one heard hi one", "two heard hi two"]);
  assert.deepEqual(heard.toSorted(), ["one", "two"]);
  await client.say("a_grow");
  await told.promise;
  assert.ok((await client.names()).includes("a_late"));
  assert.ok(!(await bystander.names()).includes("a_late"));
  other.resolve("silent");
  assert.equal(await other.promise, "silent");
});

test("a function that fails takes away its own tools only", async () => {
  await using fleet = await startFleet(startTestGateway, {}, { enabled: false });
  await using client = await connectKit(fleet.gateway, "all");
  assert.deepEqual(await client.names(), ["a_who", "a_ask", "a_grow"]);
  assert.equal(await client.say("a_who"), "one 1");
});

test("a session that a function has lost is told so", async () => {
  await using fleet = await startFleet(startTestGateway);
  await using client = await connectKit(fleet.gateway, "all");
  await fleet.one[Symbol.asyncDispose]();
  const again = await startKitServer("one", toolsOf("one"));
  Object.assign(fleet.one, { port: again.port });
  await using _again = again;
  await assert.rejects(client.say("a_who"), /SESSION_NOT_FOUND/);
  const forged = await fetch(`${fleet.gateway.url}/ws/functions/all/mcp`, {
    method: "POST",
    headers: { authorization: "Bearer good", "mcp-session-id": "v1.e30" },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  });
  assert.equal(forged.status, 404);
});

test("rules of the virtual server and of each function hold for its callers", async () => {
  const denied = { pins: null, access: [{ callers: ["good"], allow: ["who"] }] };
  const tools = { pins: null, access: [{ callers: ["good"], allow: ["a_*", "b_*"] }] };
  await using fleet = await startFleet(startTestGateway, { tools }, { tools: denied });
  await using client = await connectKit(fleet.gateway, "all");
  assert.deepEqual(await client.names(), ["a_who", "a_ask", "a_grow", "b_who"]);
  await assert.rejects(client.say("b_ask"), /There is no tool "ask"/);
  const foreign = await fetch(`${fleet.gateway.url}/ws/functions/all/mcp`, {
    method: "POST",
    headers: { authorization: "Bearer foreign" },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  });
  assert.equal(foreign.status, 403);
});

test("functions that serve each other do not call in a circle", async () => {
  const servers = [{ name: "all", prefix: "x", allow: null }];
  await using gateway = await startTestGateway({
    upstream: 0,
    workloads: [{ kind: "function", name: "all", door: "platform", servers }],
  });
  await assert.rejects(connectKit(gateway, "all"), /None of the servers behind this one answers/);
});

inEveryLane("clients of the sessionless protocol reach servers of both generations", async (start) => {
  await using fleet = await startFleet(start);
  await using modern = await startModern();
  fleet.two.port = modern.port;
  const client = new Client(
    { name: "test", version: "1.0.0" },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: "2026-07-28" } } },
  );
  client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { name: "Ada" } }));
  const url = new URL(`${fleet.gateway.url}/ws/functions/all/mcp`);
  const requestInit = { headers: { authorization: "Bearer good" } };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map(({ name }) => name).slice(0, 4), ["a_who", "a_ask", "a_grow", "b_test_simple_text"]);
  const say = async (name: string): Promise<string> => {
    const { content } = await client.callTool({ name, arguments: {} });
    return content.map((part) => (part.type === "text" ? part.text : "")).join("");
  };
  // The one server only knows the handshake, and the other asks in a second round trip.
  assert.equal(await say("a_who"), "one 1");
  assert.match(await say("b_test_input_required_result_elicitation"), /Ada/);
  await client.close();
});

async function startModern(): Promise<{ port: number } & AsyncDisposable> {
  const handler = createMcpHandler((context) => everythingServer(context), { legacy: "reject" });
  const http = createServer(fetchListener((request) => handler.fetch(request)));
  return {
    port: await listen(http),
    async [Symbol.asyncDispose]() {
      http.close();
      http.closeAllConnections();
    },
  };
}
