/** The official clients of OpenAI and Anthropic, with another base address and key, over all models of a caller. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { WebSocket } from "ws";
import { makeServiceAccount, makeUser } from "../identities.ts";
import { startRealtime } from "../models/realtime-server.ts";
import { sendJson, startUpstream } from "../models/upstream-server.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { eventually } from "../sandboxd-harness.ts";

let platform: TestPlatform;
/** Works in the workspace `main` only. */
let bound: string;

const openai = (key = platform.apiKey): OpenAI =>
  new OpenAI({ baseURL: `${platform.url}/openai/v1`, apiKey: key, maxRetries: 0 });
const anthropic = (key = platform.apiKey): Anthropic =>
  new Anthropic({ baseURL: `${platform.url}/anthropic`, apiKey: key, maxRetries: 0 });
const messages = [{ role: "user" as const, content: "hello there" }];

before(async () => {
  platform = await startTestPlatform();
  await platform.call("POST", "/workspaces", { body: { name: "second" } });
  const make = (name: string, workspace: string) =>
    platform.call("POST", "/models", {
      body: { metadata: { name }, spec: { runtime: { type: "mock", model: "echo" } } },
      workspace,
    });
  for (const [name, workspace] of [["echo", "main"] as const, ["other", "second"] as const])
    assert.equal((await make(name, workspace)).status, 200);
  bound = (await makeServiceAccount(platform.app.store, "main")).key;
});
after(() => platform.stop());

test("chat, streams, responses and embeddings, by the name in the body", async () => {
  const chat = await openai().chat.completions.create({ model: "main/echo", messages });
  assert.equal(chat.choices[0]?.message.content, "hello there");
  const elsewhere = await openai().chat.completions.create({ model: "second/other", messages });
  assert.equal(elsewhere.choices[0]?.message.content, "hello there");
  const short = await openai(bound).chat.completions.create({ model: "echo", messages, stream: true });
  let text = "";
  for await (const chunk of short) text += chunk.choices[0]?.delta.content ?? "";
  assert.equal(text, "hello there");
  assert.equal((await openai().responses.create({ model: "main/echo", input: "hi" })).output_text, "hi");
  assert.ok((await openai().embeddings.create({ model: "main/echo", input: "a" })).data[0]?.embedding.length);
  const said = await anthropic().messages.create({ model: "main/echo", max_tokens: 9, messages });
  assert.deepEqual(
    said.content.map((block) => block.type === "text" && block.text),
    ["hello there"],
  );
});

test("files and batches have no model in their body: a header names it, and the rights are the model's", async () => {
  await using up = await startUpstream((request, res) =>
    sendJson(res, { id: "file-1", object: "file", url: request.url }),
  );
  await platform.call("POST", "/integrations/connections", {
    body: {
      metadata: { name: "openai" },
      spec: { integration: "openai", config: { baseUrl: up.baseUrl }, secret: { apiKey: "k" } },
    },
  });
  const spec = { runtime: { type: "openai", model: "gpt" }, integrationConnections: ["openai"] };
  await platform.call("POST", "/models", { body: { metadata: { name: "gpt" }, spec } });
  const at = (model: string, key = platform.apiKey) =>
    openai(key).withOptions({ defaultHeaders: { "x-service-model": model } });
  assert.equal((await at("main/gpt").files.retrieve("file-1")).id, "file-1");
  assert.deepEqual(
    up.requests.map(({ method, url }) => [method, url]),
    [["GET", "/v1/files/file-1"]],
  );
  await assert.rejects(openai().files.retrieve("file-1"), { status: 400 });
  await assert.rejects(at("second/other", bound).files.retrieve("file-1"), { status: 403 });
  await platform.call("DELETE", "/models/gpt");
});

test("the requests are in the ledger of the model's workspace", async () => {
  const { body } = await platform.call("GET", "/usage/models", { workspace: "second" });
  await eventually(
    async () => (await platform.call("GET", "/usage/models", { workspace: "second" })).body.summary.requests === 1,
    `one request of the second workspace; at first ${JSON.stringify(body.summary)}`,
  );
});

test("the list has every model of the caller, and no other", async () => {
  const ids = async (key?: string) => (await openai(key).models.list()).data.map(({ id }) => id).sort();
  assert.deepEqual(await ids(), ["main/echo", "second/other"]);
  assert.deepEqual(await ids(bound), ["main/echo"]);
  assert.equal((await openai().models.retrieve("second/other")).owned_by, "mock");
  assert.equal((await anthropic().models.list()).data.length, 2);
  await assert.rejects(openai(bound).models.retrieve("second/other"), { status: 404 });
});

test("callers without the right, and names that lead nowhere, are refused", async () => {
  const chat = (key: string, model: string) => openai(key).chat.completions.create({ model, messages });
  await assert.rejects(chat("wrong", "main/echo"), { status: 401 });
  await assert.rejects(chat(bound, "second/other"), { status: 403 });
  const stranger = await makeUser(platform.app.store, null, "member", { second: "member" }, ["sandboxes:read"]);
  await assert.rejects(chat(stranger.key, "second/other"), { status: 403 });
  await assert.rejects(chat(platform.apiKey, "main/none"), { status: 404 });
  await assert.rejects(chat(platform.apiKey, "nowhere/echo"), { status: 404 });
  await assert.rejects(chat(platform.apiKey, ""), { status: 400 });
  for (const path of ["/openai/v2/models", "/openai", "/openai/v1models", "/run/openai/v1/models"]) {
    const headers = { authorization: `Bearer ${platform.apiKey}` };
    assert.equal((await fetch(`${platform.url}${path}`, { headers })).status, 404, path);
  }
});

test("a facade that is switched off is not there", async () => {
  await using own = await startTestPlatform({ config: { facades: "anthropic" } });
  const status = async (path: string) =>
    (await fetch(`${own.url}${path}`, { headers: { authorization: `Bearer ${own.apiKey}` } })).status;
  assert.deepEqual([await status("/openai/v1/models"), await status("/anthropic/v1/models")], [404, 200]);
  assert.equal(await status("/e2b/sandboxes"), 404);
});

test("a realtime session names the model in its address and the key as browsers can, and stands in the ledger", async (t) => {
  await using provider = await startRealtime();
  const config = { baseUrl: provider.baseUrl };
  await platform.call("POST", "/integrations/connections", {
    body: { metadata: { name: "voices" }, spec: { integration: "openai", config, secret: { apiKey: "k" } } },
  });
  const spec = { runtime: { type: "openai", model: "gpt-realtime" }, integrationConnections: ["voices"] };
  await platform.call("POST", "/models", { body: { metadata: { name: "voice" }, spec } });
  const open = (key: string, model: string): WebSocket =>
    new WebSocket(`${platform.url.replace("http", "ws")}/openai/v1/realtime?model=${model}`, [
      "realtime",
      `openai-insecure-api-key.${key}`,
    ]);

  await t.test("spoken with", async () => {
    const socket = open(platform.apiKey, "main/voice");
    const done = Promise.withResolvers<void>();
    socket.on("message", (data) => {
      const { type } = JSON.parse(data.toString());
      if (type === "session.created") socket.send('{"type":"response.create"}');
      if (type === "response.done") done.resolve();
    });
    socket.on("error", done.reject);
    await done.promise;
    assert.equal(socket.protocol, "realtime");
    const [{ url, headers } = { url: "", headers: {} }] = provider.handshakes;
    assert.deepEqual(
      [url, headers.authorization, headers["sec-websocket-protocol"]],
      ["/v1/realtime?model=gpt-realtime", "Bearer k", "realtime"],
    );
    socket.close();
    await eventually(async () => {
      const { body } = await platform.call("GET", "/models/voice/requests");
      return body.data[0]?.inputTokens === 132 && body.data[0]?.outputTokens === 121;
    });
  });

  await t.test("over when the model is switched off or the key is taken away", async () => {
    const { key, sub } = await makeServiceAccount(platform.app.store, "main");
    const write = (enabled: boolean) =>
      platform.call("PUT", "/models/voice", { body: { metadata: { name: "voice" }, spec: { ...spec, enabled } } });
    /** What a session hears that begins a response after this. */
    const after = async (change: () => Promise<{ status: number }>): Promise<unknown[]> => {
      const socket = open(key, "main/voice");
      const heard: { type: string; error?: { code: string } }[] = [];
      const has = (wanted: string): boolean => heard.some(({ type }) => type === wanted);
      let code = 0;
      socket.on("close", (told) => {
        code = told;
      });
      socket.on("message", (data) => heard.push(JSON.parse(data.toString())));
      await eventually(async () => has("session.created"));
      assert.equal((await change()).status, 200);
      socket.send('{"type":"response.create"}');
      await eventually(async () => code !== 0 || has("response.done"));
      socket.terminate();
      return [code, heard.find(({ type }) => type === "error")?.error?.code];
    };
    assert.deepEqual(await after(() => write(false)), [1008, "WORKLOAD_DISABLED"]);
    assert.equal((await write(true)).status, 200);
    const taken = await after(() => platform.call("DELETE", `/service_accounts/${sub}`, { workspace: "main" }));
    assert.deepEqual(taken, [1008, "AUTHENTICATION_FAILED"]);
  });

  await t.test("rights", async () => {
    const status = (key: string, model: string): Promise<number> =>
      new Promise((resolve) => {
        const socket = open(key, model);
        socket.on("unexpected-response", (_, { statusCode }) => {
          resolve(statusCode ?? 0);
          socket.terminate();
        });
        socket.on("error", () => undefined);
      });
    assert.equal(await status("wrong", "main/voice"), 401);
    assert.equal(await status(bound, "second/other"), 403);
    assert.equal(await status(platform.apiKey, "main/none"), 404);
    assert.equal(provider.handshakes.length, 3);
  });
});
