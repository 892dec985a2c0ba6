/** The official MCP client and server with the gateway between them, several copies of the server included. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer, type RequestListener, type Server } from "node:http";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  type CallToolResult,
  CallToolResultSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { GatewayDeps, InstanceLease } from "../../src/gateway/deps.ts";
import { AUTH, dial, exchange, inEveryLane, listen, type Start, type TestGateway } from "./harness.ts";

interface Copy extends AsyncDisposable {
  port: number;
  /** Session ids as the server knows them. */
  sessions: Map<string, StreamableHTTPServerTransport>;
  /** Session ids of requests, as they came in. */
  heard: (string | undefined)[];
}

/** A server of the official kit: tells its own name, counts within a session, and can add a tool while it runs. */
async function startCopy(name: string, sessionful: boolean): Promise<Copy> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const heard: (string | undefined)[] = [];
  const open = async (): Promise<StreamableHTTPServerTransport> => {
    const server = new McpServer({ name, version: "1.0.0" });
    let calls = 0;
    server.registerTool("who", { description: "Who answers, and which call this is" }, () => {
      calls += 1;
      return { content: [{ type: "text", text: `${name} ${calls}` }] };
    });
    server.registerTool("grow", { description: "Adds a tool" }, () => {
      server.registerTool("late", {}, () => ({ content: [] }));
      return { content: [] };
    });
    const transport = new StreamableHTTPServerTransport({
      ...(sessionful ? { sessionIdGenerator: randomUUID } : {}),
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    await server.connect(transport as Transport);
    return transport;
  };
  const handle: RequestListener = async (request, response) => {
    const id = request.headers["mcp-session-id"] as string | undefined;
    heard.push(id);
    const known = id === undefined ? undefined : sessions.get(id);
    if (id !== undefined && known === undefined && sessionful) response.writeHead(404).end();
    else await (known ?? (await open())).handleRequest(request, response);
  };
  const server: Server = createServer(handle);
  return {
    port: await listen(server),
    sessions,
    heard,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

interface Fleet extends AsyncDisposable {
  gateway: TestGateway;
  copies: Map<string, Copy>;
  /** Copies that answer, by their keys. */
  live: Set<string>;
}

/** Two copies that take turns, as the least busy one of two idle copies might. */
async function startFleet(start: Start, sessionful: boolean): Promise<Fleet> {
  const copies = new Map<string, Copy>();
  for (const name of ["one", "two"]) copies.set(name, await startCopy(name, sessionful));
  const live = new Set(copies.keys());
  let turn = 0;
  const lease = (key: string): InstanceLease => ({ key, release() {} });
  const deps: Partial<GatewayDeps> = {
    ready: () => lease([...copies.keys()][turn++ % copies.size] ?? ""),
    rejoin: (_workload, key) => (live.has(key) ? { ...lease(key), revision: "1" } : null),
    dial: ({ key }) => dial(copies.get(key)?.port ?? 0),
  };
  const gateway = await start({ upstream: 0, workloads: [{ kind: "function", name: "srv" }], deps });
  return {
    gateway,
    copies,
    live,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      for (const copy of copies.values()) await copy[Symbol.asyncDispose]();
    },
  };
}

const addressOf = ({ url }: TestGateway): URL => new URL(`${url}/ws/functions/srv/mcp`);

async function connect(gateway: TestGateway): Promise<{ client: Client; transport: StreamableHTTPClientTransport }> {
  const transport = new StreamableHTTPClientTransport(addressOf(gateway), {
    requestInit: { headers: { authorization: "Bearer good" } },
  });
  const client = new Client({ name: "test", version: "1.0.0" });
  await client.connect(transport as Transport);
  return { client, transport };
}

async function say(client: Client, name = "who"): Promise<string> {
  const { content } = (await client.callTool({ name }, CallToolResultSchema)) as CallToolResult;
  return content[0]?.type === "text" ? content[0].text : "";
}

inEveryLane("a session stays with the copy that opened it", async (start) => {
  await using fleet = await startFleet(start, true);
  const first = await connect(fleet.gateway);
  const second = await connect(fleet.gateway);
  const heard = [first, second, first, second, first].map(({ client }) => client);
  const words: string[] = [];
  for (const client of heard) words.push(await say(client));
  assert.equal(new Set(words).size, words.length, "each copy counts its own session");
  assert.deepEqual(
    [words[0], words[2], words[4]].map((word) => word?.split(" ")[1]),
    ["1", "2", "3"],
  );
  assert.equal(new Set([words[0], words[2], words[4]].map((word) => word?.split(" ")[0])).size, 1);
  assert.notEqual(words[0]?.split(" ")[0], words[1]?.split(" ")[0]);
  for (const copy of fleet.copies.values())
    for (const id of copy.heard) assert.ok(id === undefined || copy.sessions.has(id), "the server sees its own id");
  await first.client.close();
  await second.client.close();
});

inEveryLane("the server speaks first on a stream, and a session is ended by its client", async (start) => {
  await using fleet = await startFleet(start, true);
  const { client, transport } = await connect(fleet.gateway);
  const told = new Promise<void>((resolve) => {
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve());
  });
  await say(client, "grow");
  await told;
  assert.ok((await client.listTools()).tools.some(({ name }) => name === "late"));
  const counts = (): number => [...fleet.copies.values()].reduce((sum, { sessions }) => sum + sessions.size, 0);
  assert.equal(counts(), 1);
  await transport.terminateSession();
  assert.equal(counts(), 0);
  await client.close();
});

inEveryLane("a session whose copy is gone is told so, and a new one begins elsewhere", async (start) => {
  await using fleet = await startFleet(start, true);
  const { client } = await connect(fleet.gateway);
  const [copy = ""] = (await say(client)).split(" ");
  fleet.live.delete(copy);
  await assert.rejects(say(client), (error: { code?: number; message: string }) => {
    assert.equal(error.code, 404);
    assert.match(error.message, /SESSION_NOT_FOUND/);
    return true;
  });
  await client.close();
  const again = await connect(fleet.gateway);
  assert.match(await say(again.client), / 1$/);
  await again.client.close();
});

inEveryLane("a server without sessions is served by any copy, in either revision of the protocol", async (start) => {
  await using fleet = await startFleet(start, false);
  const { client, transport } = await connect(fleet.gateway);
  assert.equal(transport.sessionId, undefined);
  const words = [await say(client), await say(client)].map((word) => word.split(" ")[0]);
  assert.deepEqual(new Set(words), new Set(["one", "two"]));
  await client.close();
  // A client of the sessionless revision may still send the id of an earlier life: it means nothing.
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "server/discover" });
  for (let round = 0; round < 2; round += 1)
    await fetch(addressOf(fleet.gateway), {
      method: "POST",
      body,
      headers: {
        authorization: "Bearer good",
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "server/discover",
        "mcp-session-id": "left~over",
      },
    }).then((answer) => answer.body?.cancel());
  for (const { heard } of fleet.copies.values()) assert.ok(heard.includes("left~over"));
});

inEveryLane("a client without credentials is told where to get some", async (start) => {
  await using fleet = await startFleet(start, true);
  const { port } = fleet.gateway;
  const post = (path: string, headers: string): Promise<string> =>
    exchange(port, `POST ${path} HTTP/1.1\r\nHost: h\r\n${headers}Connection: close\r\nContent-Length: 0\r\n\r\n`);
  const metadata = "http://platform.test/.well-known/oauth-protected-resource/ws/functions/srv/mcp";
  const none = await post("/ws/functions/srv/mcp?a=b", "");
  assert.match(none, /^HTTP\/1.1 401 /);
  assert.equal(challengeIn(none), `Bearer resource_metadata="${metadata}"`);
  const wrong = await post("/ws/functions/srv/mcp", "Authorization: Bearer stale\r\n");
  assert.equal(challengeIn(wrong), `Bearer resource_metadata="${metadata}", error="invalid_token"`);
  const odd = await post('/ws/functions/srv/"quoted"', "");
  assert.equal(challengeIn(odd), "Bearer");
  const missing = await post("/ws/functions/none/mcp", "");
  assert.match(missing, /^HTTP\/1.1 401 .*resource\/ws\/functions\/none\/mcp"/s);
  assert.match(await post("/ws/functions/none/mcp", AUTH), /^HTTP\/1.1 404 /);
});

inEveryLane("at a host name of its own, the host says where to get a token", async (start) => {
  const workloads = [
    { kind: "function" as const, name: "srv" },
    { kind: "function" as const, name: "open", public: true },
  ];
  await using upstream = await startCopy("open", false);
  await using gateway = await start({ upstream: upstream.port, workloads, domain: "berth.test" });
  const ask = (method: string, path: string, host: string): Promise<string> =>
    exchange(
      gateway.port,
      `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
    );
  const known = "/.well-known/oauth-protected-resource";
  const host = "mcp-srv-ws.eu.berth.test:8080";
  const none = await ask("POST", "/mcp?a=b", host);
  assert.match(none, /^HTTP\/1.1 401 /);
  assert.equal(challengeIn(none), `Bearer resource_metadata="http://${host}${known}/mcp"`);
  for (const [path, resource] of [
    [`${known}/mcp`, `http://${host}/mcp`],
    [known, `http://${host}`],
  ] as const) {
    const [head = "", body = ""] = (await ask("GET", path, host)).split("\r\n\r\n");
    assert.match(head, /^HTTP\/1.1 200 .*access-control-allow-origin: \*/is);
    assert.deepEqual(JSON.parse(body), {
      resource,
      authorization_servers: ["http://platform.test"],
      scopes_supported: ["functions:get"],
      bearer_methods_supported: ["header"],
    });
  }
  const other = await ask("GET", `${known}-of-mine`, host);
  assert.match(other, /^HTTP\/1.1 401 /);
  assert.doesNotMatch(await ask("GET", `${known}/mcp`, "mcp-open-ws.eu.berth.test"), /authorization_servers/);
  const odd = await ask("POST", "/mcp", 'mcp-srv-ws.eu.berth.test:"');
  assert.doesNotMatch(odd, /resource_metadata/);
});

const challengeIn = (response: string): string | undefined => /^www-authenticate: (.*)\r$/im.exec(response)?.[1];
