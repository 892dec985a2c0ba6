/** Ways around the meter, the caps and the keeper of the keys that a caller or a writer of models could try. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startGateway, type TestGateway } from "./gateway-harness.ts";
import { sendJson, startEvents, startUpstream } from "./upstream-server.ts";

const COUNTS = { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 };
const RESPONSE = { id: "resp_1", object: "response", status: "completed", output: [] };
const KEPT_COUNTS = { input_tokens: 100, output_tokens: 50, total_tokens: 150 };

const send = (gateway: TestGateway, path: string, body?: unknown): Promise<string> =>
  fetch(gateway.url("m") + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).then((response) => response.text());

/** A provider that reads paths as generously as many servers do, and counts in streams only when asked. */
const startGenerous = () =>
  startUpstream(({ json }, res) => {
    const asked = (json.stream_options as { include_usage?: boolean } | undefined)?.include_usage === true;
    startEvents(res);
    const none = asked ? { usage: null } : {};
    for (const content of ["Hello, ", '"usage":null ', "world"])
      res.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }], ...none })}\n\n`);
    if (asked) res.write(`data: ${JSON.stringify({ choices: [], usage: COUNTS })}\n\n`);
    res.end("data: [DONE]\n\n");
  });

const CHAT = { messages: [{ role: "user", content: "Hi" }], stream: true };

for (const path of [
  "/v1/chat/completions/",
  "/v1/chat/completion%73",
  "/v1//chat//completions//",
  "/v1/chat%2Fcompletions",
]) {
  test(`${path} is counted and capped like the endpoint it is`, async () => {
    await using upstream = await startGenerous();
    const policies = [{ name: "cap", type: "maxToken", maxTokens: { granularity: "month", total: 120 } }];
    await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl, policies } });
    await send(gateway, path, CHAT);
    const [counted] = await gateway.recorded(1);
    assert.deepEqual([counted?.inputTokens, counted?.outputTokens, counted?.estimated], [100, 50, false]);
    assert.match(await send(gateway, path, CHAT), /TOKEN_LIMIT_EXCEEDED/);
  });
}

test("a stream of text is counted, whatever its endpoint is called", async () => {
  await using upstream = await startGenerous();
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
  await send(gateway, "/v1/next/generation", CHAT);
  const [counted] = await gateway.recorded(1);
  assert.ok(counted?.estimated && counted.inputTokens > 0 && counted.outputTokens > 0);
});

test("who did not ask for counts gets the stream of one who did not ask", async () => {
  await using upstream = await startGenerous();
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
  const unasked = await send(gateway, "/v1/chat/completions", CHAT);
  assert.ok(unasked.includes('\\"usage\\":null '), "what the model wrote is left alone");
  assert.ok(!unasked.includes(',"usage"'));
  const asked = await send(gateway, "/v1/chat/completions", { ...CHAT, stream_options: { include_usage: true } });
  assert.equal(asked.split(',"usage":null').length, 4);
  assert.ok(asked.includes('"usage":{"prompt_tokens":100'));
});

test("looking at an earlier answer counts nothing", async () => {
  await using upstream = await startUpstream((_, res) => sendJson(res, { ...RESPONSE, usage: KEPT_COUNTS }));
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
  await send(gateway, "/v1/responses", { input: "Hi" });
  await send(gateway, "/v1/responses/resp_1");
  await send(gateway, "/v1/responses/resp_1/cancel", {});
  await send(gateway, "/v1/chat/completions/chatcmpl-1", { metadata: { a: "b" } });
  await send(gateway, "/v1/chat/completions?limit=5");
  await send(gateway, "/v1/responses/compact", { input: "Hi" });
  const usage = await gateway.recorded(6);
  assert.deepEqual(
    usage.map(({ outputTokens, estimated }) => [outputTokens, estimated]),
    [50, 0, 0, 0, 0, 50].map((tokens) => [tokens, false]),
  );
});

test("an answer in the background counts as the most it may be", async () => {
  await using upstream = await startUpstream((_, res) => sendJson(res, { ...RESPONSE, status: "queued", usage: null }));
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl } });
  await send(gateway, "/v1/responses", { input: "Hi", background: true, max_output_tokens: 7000 });
  await send(gateway, "/v1/responses", { input: "Hi", background: true });
  const usage = await gateway.recorded(2);
  assert.deepEqual(
    usage.map(({ outputTokens, estimated }) => [outputTokens, estimated]),
    [
      [7000, true],
      [16_384, true],
    ],
  );
});

test("an answer in the background can be fetched when it has used up the cap", async () => {
  await using upstream = await startUpstream((_, res) => sendJson(res, { ...RESPONSE, usage: null }));
  const policies = [{ name: "cap", type: "maxToken", maxTokens: { granularity: "month", total: 5000 } }];
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl, policies } });
  await send(gateway, "/v1/responses", { input: "Hi", background: true, max_output_tokens: 7000 });
  assert.match(await send(gateway, "/v1/responses", { input: "Hi" }), /TOKEN_LIMIT_EXCEEDED/);
  assert.match(await send(gateway, "/v1/responses/resp_1"), /resp_1/);
});

test("a provider cannot make the sums overflow", async () => {
  const huge = { prompt_tokens: Number.MAX_SAFE_INTEGER, completion_tokens: 1e300, total_tokens: -1 };
  await using upstream = await startUpstream((_, res) => sendJson(res, { choices: [], usage: huge }));
  const prices = { input: "999999", output: "999999" };
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: upstream.baseUrl, prices } });
  await send(gateway, "/v1/chat/completions", { messages: CHAT.messages });
  const [counted] = await gateway.recorded(1);
  assert.deepEqual([counted?.inputTokens, counted?.outputTokens, counted?.costNanoUsd], [100_000_000, 0, 1e12]);
});

test("an answer in lines of JSON is counted by its last", async () => {
  const meta = { billed_units: { input_tokens: 4, output_tokens: 2 } };
  const lines = [
    { event_type: "text-generation", text: "Hi." },
    { event_type: "stream-end", response: { meta } },
  ];
  await using upstream = await startUpstream((_, res) => {
    res.writeHead(200, { "content-type": "application/stream+json" });
    res.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  });
  await using gateway = await startGateway({ m: { type: "cohere", baseUrl: upstream.baseUrl } });
  await send(gateway, "/v1/chat", { message: "Hi", stream: true });
  const [counted] = await gateway.recorded(1);
  assert.deepEqual([counted?.inputTokens, counted?.outputTokens, counted?.estimated], [4, 2, false]);
});

test("of two limits on the answer the larger is reserved", async () => {
  const held = Promise.withResolvers<void>();
  await using upstream = await startUpstream(async (_, res) => {
    await held.promise;
    sendJson(res, { choices: [], usage: COUNTS });
  });
  const policies = [{ name: "cap", type: "maxToken", maxTokens: { granularity: "month", output: 1000 } }];
  await using gateway = await startGateway({ m: { type: "mistral", baseUrl: upstream.baseUrl, policies } });
  const body = { messages: CHAT.messages, max_completion_tokens: 1, max_tokens: 900 };
  const first = send(gateway, "/v1/chat/completions", body);
  await upstream.received(1);
  assert.match(await send(gateway, "/v1/chat/completions", { ...body, max_tokens: 200 }), /TOKEN_LIMIT_EXCEEDED/);
  held.resolve();
  await first;
});

test("nothing is sent to an address that the model names", async (t) => {
  await using thief = await startUpstream((_, res) => sendJson(res, { choices: [], usage: COUNTS }));
  const endpointName = thief.baseUrl;
  const types = ["openai", "openai-compatible", "huggingface", "azure-openai-service", "anthropic"];
  for (const type of types) {
    await t.test(type, async () => {
      await using gateway = await startGateway({ m: { type, endpointName } });
      assert.match(await send(gateway, "/v1/chat/completions", CHAT), /PROVIDER_NOT_CONFIGURED.*spec\.config\.baseUrl/);
      await using keyless = await startGateway({ m: { type, endpointName, secret: {} } });
      assert.match(await send(keyless, "/v1/chat/completions", CHAT), /PROVIDER_NOT_CONFIGURED.*spec\.config\.baseUrl/);
    });
  }
  await t.test("nor to another provider", async () => {
    await using gateway = await startGateway({
      m: { type: "azure-openai", integration: "openai", endpointName: "mine" },
    });
    assert.match(await send(gateway, "/v1/chat/completions", CHAT), /PROVIDER_NOT_CONFIGURED.*a key of OpenAI, which/);
  });
  assert.equal(thief.requests.length, 0);
});
