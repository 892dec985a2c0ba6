/** Realtime sessions over WebSockets: passed on byte for byte, counted, and cut when a cap is reached. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import { WebSocket } from "ws";
import type { PolicyRecord } from "../../src/models/model-records.ts";
import { eventually } from "../gateway/harness.ts";
import { startGateway, type TestGateway, type TestModel } from "./gateway-harness.ts";
import { startRealtime, USAGE } from "./realtime-server.ts";

const modelAt = (baseUrl: string, more: Partial<TestModel> = {}): TestModel => ({
  ...{ type: "openai", model: "gpt-realtime", baseUrl },
  ...more,
});

const capped = (maxTokens: Record<string, unknown>): PolicyRecord => ({
  ...{ name: "cap", type: "maxToken" },
  maxTokens: { granularity: "day", step: 1, ...maxTokens },
});

type Event = { type: string } & Record<string, unknown>;

interface Session {
  socket: WebSocket;
  events: Event[];
  /** Resolves with the first event of the type, after those that were taken before. */
  next(type: string): Promise<Event>;
  /** The code of the close frame. */
  closed: Promise<number>;
}

function open(gateway: TestGateway, model: string, path = "/v1/realtime?model=any"): Session {
  const socket = new WebSocket(`${gateway.url(model).replace("http", "ws")}${path}`, {
    headers: { authorization: "Bearer platform-key" },
  });
  const events: Event[] = [];
  let taken = 0;
  socket.on("message", (data) => events.push(JSON.parse(data.toString()) as Event));
  const closed = new Promise<number>((resolve) => socket.on("close", resolve));
  return {
    socket,
    events,
    closed,
    async next(type) {
      const find = () => events.slice(taken).find((event) => event.type === type);
      await eventually(() => find() !== undefined, `an event ${type}`);
      const found = find() as Event;
      taken = events.indexOf(found) + 1;
      return found;
    },
  };
}

/** The status of an answer instead of a session. */
async function refused({ socket, closed }: Session): Promise<number> {
  const [, response] = await once(socket, "unexpected-response");
  socket.on("error", () => undefined);
  socket.terminate();
  await closed;
  return response.statusCode;
}

const SAY = JSON.stringify({ type: "response.create" });

test("a session passes both ways, with the stored key and the record's model, and each response is counted", async () => {
  await using provider = await startRealtime();
  const prices = { input: "4", output: "16", cachedInput: "0.4", audioInput: "32", audioOutput: "64" };
  await using gateway = await startGateway({ voice: modelAt(provider.baseUrl, { prices }) });
  const session = open(gateway, "voice");
  await session.next("session.created");
  session.socket.send(JSON.stringify({ type: "session.update", session: { instructions: "ü".repeat(40_000) } }));
  for (let number = 1; number <= 2; number += 1) {
    session.socket.send(SAY);
    const { response } = await session.next("response.done");
    assert.deepEqual((response as { usage: unknown }).usage, USAGE);
    assert.equal(gateway.usage.length, number, "counted before the client has the end");
  }
  const [handshake] = provider.handshakes;
  assert.equal(handshake?.url, "/v1/realtime?model=gpt-realtime");
  assert.equal(handshake?.headers.authorization, "Bearer stored-key");
  assert.equal(provider.received.length, 3);
  assert.deepEqual(provider.received[0]?.session, { instructions: "ü".repeat(40_000) });
  const audio = session.events.find(({ type }) => type === "response.output_audio.delta");
  assert.equal(String(audio?.delta).length, 70_000);
  session.socket.close(1000);
  await session.closed;
  await eventually(() => provider.sockets.size === 0, "the end of the session at the provider");
  const [first, second] = gateway.usage;
  assert.notEqual(first?.requestId, second?.requestId);
  for (const usage of [first, second]) {
    const { inputTokens, outputTokens, cachedInputTokens, estimated, outcome, stream } = usage ?? {};
    assert.deepEqual([inputTokens, outputTokens, cachedInputTokens], [132, 121, 64]);
    assert.deepEqual([estimated, outcome, stream], [false, "completed", true]);
    // 55 text and 13 audio of the input, 64 cached; 30 text and 91 audio of the output; thousandths of USD a million.
    assert.equal(usage?.costNanoUsd, (55 * 4 + 13 * 32 + 64 * 0.4 + 30 * 16 + 91 * 64) * 1000);
  }
  assert.equal(gateway.usage.length, 2);
});

test("a cap that a response uses up ends the session with an event and a close code, and the next is refused", async () => {
  await using provider = await startRealtime();
  await using gateway = await startGateway({
    voice: modelAt(provider.baseUrl, { policies: [capped({ total: 300 })] }),
  });
  const session = open(gateway, "voice");
  await session.next("session.created");
  session.socket.send(SAY);
  await session.next("response.done");
  session.socket.send(SAY);
  const { error } = await session.next("error");
  assert.equal((error as { code: string }).code, "TOKEN_LIMIT_EXCEEDED");
  assert.equal(await session.closed, 1008);
  await eventually(() => provider.sockets.size === 0, "the end of the session at the provider");
  assert.equal(gateway.usage.length, 2);
  assert.equal(await refused(open(gateway, "voice")), 429);
  assert.equal(provider.handshakes.length, 1, "the provider is not asked");
});

test("a limit of requests counts responses", async () => {
  await using provider = await startRealtime();
  await using gateway = await startGateway({
    voice: modelAt(provider.baseUrl, { policies: [capped({ requests: 2 })] }),
  });
  const session = open(gateway, "voice");
  await session.next("session.created");
  for (let count = 0; count < 2; count += 1) {
    session.socket.send(SAY);
    await session.next("response.done");
  }
  assert.equal(await session.closed, 1008);
  assert.equal(gateway.usage.length, 2);
});

test("a client that leaves before the end of a response is counted by an estimate, prompt included", async () => {
  await using provider = await startRealtime({ stalls: true });
  await using gateway = await startGateway({
    voice: modelAt(provider.baseUrl, { policies: [capped({ total: 1_000_000 })] }),
  });
  const session = open(gateway, "voice");
  await session.next("session.created");
  session.socket.send(JSON.stringify({ type: "conversation.item.create", item: { text: "x".repeat(4000) } }));
  session.socket.send(SAY);
  await session.next("response.output_text.delta");
  session.socket.terminate();
  const [usage] = await gateway.recorded(1);
  assert.deepEqual([usage?.estimated, usage?.outcome, usage?.outputTokens], [true, "aborted", 2]);
  assert.ok((usage?.inputTokens ?? 0) >= 1000);
  await eventually(() => provider.sockets.size === 0, "the end of the session at the provider");
});

test("a provider's event of any shape passes, and ends neither the session nor the server", async () => {
  await using provider = await startRealtime();
  await using gateway = await startGateway({ voice: modelAt(provider.baseUrl) });
  const session = open(gateway, "voice");
  await session.next("session.created");
  // Neither of these becomes a text: the first by a TypeError, the second by the depth of the stack.
  const shapes = ['{"toString":0}', `${"[".repeat(100_000)}${"]".repeat(100_000)}`];
  for (const [client] of provider.sockets.entries())
    for (const shape of shapes)
      for (const event of [
        `{"type":${shape}}`,
        `{"type":"response.created","response":{"id":${shape}}}`,
        `{"type":"response.x","response_id":${shape}}`,
      ])
        client.send(event);
  session.socket.send(SAY);
  await session.next("response.done");
  session.socket.terminate();
  await eventually(() => provider.sockets.size === 0, "the end of the session at the provider");
  // Two responses began without an id, and the second took the place of the first.
  await eventually(() => gateway.usage.length === 3, "an entry of each response");
  const outcomes = gateway.usage.map(({ outcome }) => outcome).sort();
  assert.deepEqual(outcomes, ["aborted", "completed", "interrupted"]);
});

test("OpenAI's own realtime client works with another address", async () => {
  await using provider = await startRealtime();
  await using gateway = await startGateway({ voice: modelAt(provider.baseUrl) });
  const client = new OpenAI({ baseURL: `${gateway.url("voice")}/v1`, apiKey: "platform-key" });
  // The client writes wss in any case; there is no TLS here.
  const realtime = await overPlain(() => OpenAIRealtimeWS.create(client, { model: "gpt-realtime" }));
  const done = new Promise((resolve) => realtime.on("response.done", resolve));
  realtime.on("session.created", () => realtime.send({ type: "response.create" }));
  const event = (await done) as { response: { usage: unknown } };
  assert.deepEqual(event.response.usage, USAGE);
  realtime.close();
  assert.equal((await gateway.recorded(1)).length, 1);
});

test("what cannot be read or would pass the caps by is refused", async (t) => {
  await using provider = await startRealtime({ extensions: true });
  await using gateway = await startGateway({
    voice: modelAt(provider.baseUrl),
    guarded: modelAt(provider.baseUrl, { guardrails: { redact: { patterns: ["email"] } } }),
    echo: { type: "mock" },
    claude: { type: "anthropic", baseUrl: provider.baseUrl },
  });
  await t.test("guardrails", async () => assert.equal(await refused(open(gateway, "guarded")), 403));
  await t.test("no realtime API", async () => {
    assert.equal(await refused(open(gateway, "echo")), 400);
    assert.equal(await refused(open(gateway, "claude")), 400);
  });
  await t.test("calls of others, and other WebSockets", async () => {
    assert.equal(await refused(open(gateway, "voice", "/v1/realtime?call_id=rtc_1")), 400);
    assert.equal(await refused(open(gateway, "voice", "/v1/responses")), 400);
  });
  await t.test("keys of the provider", async () => {
    for (const path of ["client_secrets", "calls", "sessions", "%63lient_secrets", "/transcription_sessions"]) {
      const answer = await fetch(`${gateway.url("voice")}/v1/realtime/${path}`, { method: "POST", body: "{}" });
      assert.equal(answer.status, 400, path);
    }
  });
  assert.equal(provider.handshakes.length, 0);
  await t.test("compression is not offered", async () => {
    const session = open(gateway, "voice");
    await session.next("session.created");
    assert.equal(provider.handshakes[0]?.headers["sec-websocket-extensions"], undefined);
    session.socket.terminate();
    await eventually(() => provider.sockets.size === 0, "the end of the session at the provider");
  });
});

test("a provider that refuses is told to the client, and a fallback is asked before; a switched-off one ends its session", async () => {
  await using broken = await startRealtime({ refuse: 404 });
  await using provider = await startRealtime();
  const spare = modelAt(provider.baseUrl, { model: "gpt-realtime-mini" });
  await using gateway = await startGateway({
    alone: modelAt(broken.baseUrl),
    voice: modelAt(broken.baseUrl, { fallbacks: ["spare"] }),
    spare,
    locked: modelAt((await startClosed()).baseUrl),
  });
  assert.equal(await refused(open(gateway, "alone")), 404);
  assert.equal(await refused(open(gateway, "locked")), 502);
  const session = open(gateway, "voice");
  await session.next("session.created");
  session.socket.send(SAY);
  await session.next("response.done");
  const { model, servedBy } = gateway.usage[0] ?? {};
  assert.deepEqual([model, servedBy], ["voice", "spare"]);
  spare.enabled = false;
  session.socket.send(SAY);
  assert.equal(((await session.next("error")).error as { code: string }).code, "WORKLOAD_DISABLED");
  assert.equal(await session.closed, 1008);
  await eventually(() => provider.sockets.size === 0, "the end of the session at the provider");
});

/** An address where nobody listens any more. */
async function startClosed(): Promise<{ baseUrl: string }> {
  const server = await startRealtime();
  await server[Symbol.asyncDispose]();
  return { baseUrl: server.baseUrl };
}

/** While `work` runs, URLs keep `ws:` where the client sets `wss`. */
async function overPlain<T>(work: () => Promise<T>): Promise<T> {
  const found = Object.getOwnPropertyDescriptor(URL.prototype, "protocol") as PropertyDescriptor;
  const set = function (this: URL, value: string): void {
    found.set?.call(this, value.replace("wss", "ws"));
  };
  Object.defineProperty(URL.prototype, "protocol", { ...found, set });
  try {
    return await work();
  } finally {
    Object.defineProperty(URL.prototype, "protocol", found);
  }
}
