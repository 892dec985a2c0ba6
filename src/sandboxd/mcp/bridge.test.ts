/** The official stdio server behind the bridge, used by the official client and by raw sessionless requests. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { CreateMessageRequestSchema, ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { type Connected, connectMcp } from "../../../test/mcp-suite.ts";
import { startMcpBridge } from "./bridge.ts";

/** A server made with the official SDK; it takes a second to start. */
const OFFICIAL = `
  import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
  import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
  const server = new McpServer({ name: "official", version: "1.0.0" });
  const text = (value) => ({ content: [{ type: "text", text: String(value) }] });
  server.registerTool("progress", {}, async (extra) => {
    const { progressToken } = extra._meta ?? {};
    for (const progress of [1, 2]) await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress } });
    return text("done");
  });
  server.registerTool("ask", {}, async () => {
    const { content } = await server.server.createMessage({ messages: [], maxTokens: 1 });
    return text("heard " + content.text);
  });
  server.registerTool("grow", {}, () => (server.registerTool("late", {}, () => text("")), text("")));
  await server.connect(new StdioServerTransport());
`;
/** A handwritten server that starts at once. */
const PLAIN = `
  const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
  const text = (value) => ({ content: [{ type: "text", text: String(value) }] });
  let count = 0;
  const tools = {
    count: () => text(process.pid + " " + ++count),
    progress: ({ _meta }) => {
      for (const progress of [1, 2]) send({ method: "notifications/progress", params: { progressToken: _meta.progressToken, progress } });
      return text("done");
    },
    crash: () => process.exit(3),
    flood: () => text("x".repeat(9 * 1024 * 1024)),
    hang: ({ _meta }) => {
      send({ method: "notifications/progress", params: { progressToken: _meta.progressToken, progress: 1 } });
      return null;
    },
    // Two steps, the second when it is told to.
    slow: ({ _meta }, id) => {
      const step = (progress) => send({ method: "notifications/progress", params: { progressToken: _meta.progressToken, progress } });
      step(1);
      next = () => (step(2), send({ id, result: text("done") }));
      return null;
    },
    go: () => (next(), text("gone")),
  };
  let next;
  const methods = {
    initialize: ({ protocolVersion }) =>
      ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "inner", version: "1" }, instructions: "Count." }),
    "tools/list": () => ({ tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: "object" } })) }),
    "tools/call": (params, id) => tools[params.name](params, id),
  };
  console.log("this is no message");
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) return;
    const result = methods[method]?.(params, id);
    if (result === undefined) send({ id, error: { code: -32601, message: "no " + method } });
    else if (result !== null) send({ id, result });
  });
`;
const argv = [process.execPath, "-e", PLAIN];
const official = [process.execPath, "--input-type=module", "-e", OFFICIAL];

async function startBridge(options: { sessionsMax?: number; argv?: string[] } = {}) {
  const bridge = await startMcpBridge({ argv, host: "127.0.0.1", port: 0, ...options });
  const url = new URL(`http://127.0.0.1:${(bridge.server.address() as AddressInfo).port}/mcp`);
  return {
    url,
    connect: (): Promise<Connected> => connectMcp(url, {}),
    async [Symbol.asyncDispose]() {
      const closed = once(bridge.server, "close");
      bridge.stop();
      await closed;
    },
  };
}

/** Sends one sessionless request and returns every message of the response. */
async function modern(
  url: URL,
  method: string,
  params: Record<string, unknown> = {},
  more: Record<string, string> = {},
) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    ...(params._meta as object | undefined),
  };
  const response = await fetch(url, {
    method: "POST",
    body: JSON.stringify({ jsonrpc: "2.0", id: "a", method, params: { ...params, _meta } }),
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(typeof params.name === "string" ? { "mcp-name": params.name } : {}),
      ...more,
    },
  });
  const body = await response.text();
  const streamed = response.headers.get("content-type") === "text/event-stream";
  const lines = streamed ? [...body.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => data) : [body];
  const messages = lines.map((line) => JSON.parse(line));
  return { status: response.status, messages, last: messages.at(-1), headers: response.headers };
}

const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};

test("every session is a process of its own, which ends with it", async () => {
  await using bridge = await startBridge();
  await using first = await bridge.connect();
  await using second = await bridge.connect();
  const [pid, one] = (await first.say("count")).split(" ");
  const [other] = (await second.say("count")).split(" ");
  assert.notEqual(pid, other);
  assert.equal(one, "1");
  assert.equal(await first.say("count"), `${pid} 2`);
  assert.equal(first.client.getServerVersion()?.name, "inner");
  assert.equal(first.client.getInstructions(), "Count.");
  const { sessionId } = first.transport;
  await first.transport.terminateSession();
  while (!isGone(Number(pid))) await pause(10);
  const late = await fetch(bridge.url, {
    method: "POST",
    headers: { "mcp-session-id": sessionId ?? "", "content-type": "application/json" },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  });
  assert.equal(late.status, 404);
  assert.match(await second.say("count"), / 2$/);
});

test("a server of the official kit speaks first: progress, questions, changes", async () => {
  await using bridge = await startBridge({ argv: official });
  await using session = await connectMcp(bridge.url, {}, { sampling: {} });
  const { client } = session;
  const seen: number[] = [];
  const params = { name: "progress", arguments: {} };
  await client.callTool(params, undefined, { onprogress: ({ progress }) => void seen.push(progress) });
  assert.deepEqual(seen, [1, 2]);
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    role: "assistant" as const,
    model: "m",
    content: { type: "text" as const, text: "you" },
  }));
  assert.equal(await session.say("ask"), "heard you");
  const changed = new Promise<void>((resolve) => {
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve());
  });
  await session.say("grow");
  await changed;
});

test("a stream goes on where it was cut, with nothing missing and nothing twice", async () => {
  await using bridge = await startBridge();
  await using session = await bridge.connect();
  const headers = {
    "mcp-session-id": session.transport.sessionId ?? "",
    "mcp-protocol-version": "2025-11-25",
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const cut = new AbortController();
  const params = { name: "slow", _meta: { progressToken: "t" } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: "s", method: "tools/call", params });
  const call = await fetch(bridge.url, { method: "POST", headers, body, signal: cut.signal });
  const [primed, first] = await eventsOf(call, 2);
  assert.deepEqual([primed?.data, first?.message.params.progress], ["", 1]);
  cut.abort();
  // The server continues while no client reads.
  await session.client.callTool({ name: "go" });
  const resume = (id: string | undefined): Promise<Response> =>
    fetch(bridge.url, { headers: { ...headers, "last-event-id": id ?? "" } });
  const rest = await eventsOf(await resume(first?.id), 2);
  assert.deepEqual(
    rest.map(({ message }) => message.params?.progress ?? message.result.content[0].text),
    [2, "done"],
  );
  const all = await eventsOf(await resume(primed?.id), 3);
  assert.equal(all.at(-1)?.message.id, "s");
  for (const wrong of ["99.1", "x", `${first?.id}00`]) assert.equal((await resume(wrong)).status, 400);
});

/** The first events of a stream. */
async function eventsOf(response: Response, count: number) {
  assert.equal(response.status, 200, response.ok ? "" : await response.text());
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    const whole = text.split("\n\n").slice(0, -1);
    const events = whole.filter((part) => /^(event|id)/.test(part));
    if (events.length < count) continue;
    return events.slice(0, count).map((part) => {
      const data = /^data: (.*)$/m.exec(part)?.[1] ?? "";
      return { id: /^id: (.*)$/m.exec(part)?.[1], data, message: data === "" ? null : JSON.parse(data) };
    });
  }
  return assert.fail(`the stream ended early: ${text}`);
}

test("a server that ends, or floods, is told of, and takes only its own session along", async () => {
  await using bridge = await startBridge();
  await using healthy = await bridge.connect();
  for (const [tool, why] of [
    ["crash", /exit code 3/],
    ["flood", /more than \d+ bytes/],
  ] as const) {
    await using session = await bridge.connect();
    await assert.rejects(session.say(tool), why);
    await assert.rejects(session.say("count"), { code: 404 });
  }
  assert.match(await healthy.say("count"), / 1$/);
});

test("clients of the sessionless protocol share a process that only knows the handshake", async () => {
  await using bridge = await startBridge();
  const { last: found } = await modern(bridge.url, "server/discover");
  assert.ok(found.result.supportedVersions.includes("2026-07-28"));
  assert.deepEqual([found.result.serverInfo.name, found.result.instructions], ["inner", "Count."]);
  const { last: listed, headers } = await modern(bridge.url, "tools/list");
  assert.equal(headers.get("mcp-session-id"), null);
  assert.ok(listed.result.tools.length > 3);
  assert.deepEqual([listed.result.resultType, listed.result.cacheScope, listed.id], ["complete", "private", "a"]);
  const counted = await Promise.all([1, 2].map(() => modern(bridge.url, "tools/call", { name: "count" })));
  const words = counted.map(({ last }) => last.result.content[0].text.split(" "));
  assert.equal(words[0]?.[0], words[1]?.[0]);
  assert.deepEqual(words.map(([, count]) => count).sort(), ["1", "2"]);
  const { messages } = await modern(bridge.url, "tools/call", { name: "progress", _meta: { progressToken: "mine" } });
  assert.deepEqual(
    messages.map(({ params }) => params?.progressToken),
    ["mine", "mine", undefined],
  );
  const crashed = await modern(bridge.url, "tools/call", { name: "crash" });
  assert.match(crashed.last.error.message, /exit code 3/);
  const again = await modern(bridge.url, "tools/call", { name: "count" });
  assert.match(again.last.result.content[0].text, / 1$/);
});

test("what the sessionless protocol refuses", async () => {
  await using bridge = await startBridge();
  const rows: [status: number, code: number, asked: ReturnType<typeof modern>][] = [
    [404, -32601, modern(bridge.url, "nothing/here")],
    [404, -32601, modern(bridge.url, "ping")],
    [400, -32020, modern(bridge.url, "tools/list", {}, { "mcp-method": "tools/call" })],
    [400, -32020, modern(bridge.url, "tools/call", { name: "count" }, { "mcp-name": "other" })],
    [400, -32020, modern(bridge.url, "tools/list", { _meta: { "io.modelcontextprotocol/protocolVersion": "1999" } })],
    [
      400,
      -32022,
      modern(
        bridge.url,
        "tools/list",
        { _meta: { "io.modelcontextprotocol/protocolVersion": "1999" } },
        { "mcp-protocol-version": "1999" },
      ),
    ],
  ];
  for (const [status, code, asked] of rows) {
    const { status: given, last } = await asked;
    assert.deepEqual([given, last.error.code], [status, code], JSON.stringify(last));
  }
  const stray = await modern(bridge.url, "tools/list", {}, { "mcp-session-id": "left-over" });
  assert.equal(stray.status, 200);
  for (const method of ["GET", "DELETE"]) {
    const answer = await fetch(bridge.url, { method, headers: { "mcp-protocol-version": "2026-07-28" } });
    assert.deepEqual([answer.status, answer.headers.get("allow")], [405, "POST"]);
  }
});

test("bounds: messages, sessions, and what is no message", async () => {
  await using bridge = await startBridge({ sessionsMax: 2 });
  const post = (body: string, headers: Record<string, string> = {}): Promise<number> =>
    fetch(bridge.url, { method: "POST", body, headers }).then(async (answer) => {
      await answer.text();
      return answer.status;
    });
  assert.equal(await post("x".repeat(8 * 1024 * 1024 + 1)), 413);
  assert.equal(await post("{"), 400);
  assert.equal(await post("[]"), 400);
  assert.equal(await post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}'), 400);
  assert.equal((await fetch(new URL("/", bridge.url))).status, 404);
  await using first = await bridge.connect();
  await using second = await bridge.connect();
  for (const { client } of [first, second])
    await new Promise<void>((busy) => {
      client.callTool({ name: "hang" }, undefined, { onprogress: () => busy() }).catch(() => {});
    });
  const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } };
  assert.equal(await post(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: hello })), 503);
  await second.transport.terminateSession();
  assert.equal(await post(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: hello })), 200);
});

test("a command that is no server never gets requests", async () => {
  await assert.rejects(startBridge({ argv: ["/bin/sh", "-c", "exit 7"] }), /exit code 7/);
  await assert.rejects(startBridge({ argv: ["/nowhere"] }), /could not be started/);
  await assert.rejects(startBridge({ argv: [] }), /no command/);
});
