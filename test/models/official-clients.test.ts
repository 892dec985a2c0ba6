/** The official client libraries, unchanged, with nothing but another base address. */
import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI, { AzureOpenAI } from "openai";
import { startGateway } from "./gateway-harness.ts";
import { eventText, goldens } from "./golden.ts";
import { cut, sendJson, sendPieces, startEvents, startUpstream } from "./upstream-server.ts";

const openaiAt = (url: string): OpenAI => new OpenAI({ baseURL: url, apiKey: "platform-key", maxRetries: 0 });
const anthropicAt = (url: string): Anthropic => new Anthropic({ baseURL: url, apiKey: "platform-key", maxRetries: 0 });

const WEATHER = {
  type: "object" as const,
  properties: { city: { type: "string" } },
  required: ["city"],
};

test("openai: chat, stream, tools, structured output, responses, embeddings, models", async (t) => {
  await using gateway = await startGateway({ echo: { type: "mock", model: "echo" } });
  const client = openaiAt(`${gateway.url("echo")}/v1`);
  const user = (content: string) => [{ role: "user" as const, content }];

  await t.test("chat", async () => {
    const answer = await client.chat.completions.create({ model: "ignored", messages: user("hello there") });
    assert.equal(answer.choices[0]?.message.content, "hello there");
    assert.equal(answer.model, "echo");
    assert.deepEqual([answer.usage?.prompt_tokens, answer.usage?.completion_tokens], [2, 2]);
  });

  await t.test("stream without usage", async () => {
    const stream = await client.chat.completions.create({ model: "x", messages: user("one two three"), stream: true });
    const pieces: string[] = [];
    for await (const chunk of stream) {
      assert.equal(chunk.usage ?? null, null);
      assert.equal(chunk.choices.length, 1, "the usage chunk was not asked for");
      pieces.push(chunk.choices[0]?.delta.content ?? "");
    }
    assert.equal(pieces.join(""), "one two three");
    assert.ok(pieces.length > 3);
  });

  await t.test("stream with usage, and the helper that puts it together", async () => {
    const stream = client.chat.completions.stream({
      model: "x",
      messages: user("one two three"),
      stream_options: { include_usage: true },
    });
    assert.equal(await stream.finalContent(), "one two three");
    assert.equal((await stream.totalUsage()).completion_tokens, 3);
  });

  await t.test("tools", async () => {
    const tools = [{ type: "function" as const, function: { name: "get_weather", parameters: WEATHER } }];
    const messages = user('call get_weather {"city":"Paris"}');
    const answer = await client.chat.completions.create({ model: "x", messages, tools });
    const call = answer.choices[0]?.message.tool_calls?.[0];
    assert.ok(call?.type === "function");
    assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["get_weather", { city: "Paris" }]);
    const message = answer.choices[0]?.message;
    assert.ok(message);
    const result = { role: "tool" as const, tool_call_id: call.id, content: "sunny" };
    const after = await client.chat.completions.create({ model: "x", messages: [...messages, message, result], tools });
    assert.equal(after.choices[0]?.message.content, "sunny");
  });

  await t.test("structured output", async () => {
    const answer = await client.chat.completions.create({
      model: "x",
      messages: user("Rome"),
      response_format: { type: "json_schema", json_schema: { name: "w", schema: WEATHER } },
    });
    assert.deepEqual(JSON.parse(answer.choices[0]?.message.content ?? ""), { city: "Rome" });
  });

  await t.test("responses, whole and streamed", async () => {
    const answer = await client.responses.create({ model: "x", input: "hello there" });
    assert.equal(answer.output_text, "hello there");
    const stream = await client.responses.create({ model: "x", input: "one two", stream: true });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    assert.equal(types[0], "response.created");
    assert.equal(types.at(-1), "response.completed");
  });

  await t.test("embeddings", async () => {
    const answer = await client.embeddings.create({ model: "x", input: ["a b", "a b", "c"] });
    assert.deepEqual(answer.data[0]?.embedding, answer.data[1]?.embedding);
    assert.notDeepEqual(answer.data[0]?.embedding, answer.data[2]?.embedding);
  });

  await t.test("models", async () => {
    const { data } = await client.models.list();
    assert.deepEqual(
      data.map((model) => model.id),
      ["echo"],
    );
  });

  const outcomes = gateway.usage.map((event) => [event.outcome, event.estimated, event.priced]);
  assert.ok(outcomes.length >= 9);
  for (const outcome of outcomes) assert.deepEqual(outcome, ["completed", false, true]);
});

test("openai: the shortest address of the interface works too", async () => {
  await using gateway = await startGateway({ echo: { type: "mock" } });
  const client = openaiAt(gateway.url("echo"));
  const answer = await client.chat.completions.create({ model: "x", messages: [{ role: "user", content: "hi" }] });
  assert.equal(answer.choices[0]?.message.content, "hi");
});

test("openai: the gateway's own errors are read as API errors", async () => {
  await using gateway = await startGateway({ off: { type: "mock", enabled: false } });
  const ask = (name: string) =>
    openaiAt(`${gateway.url(name)}/v1`).chat.completions.create({
      model: "x",
      messages: [{ role: "user", content: "hi" }],
    });
  await assert.rejects(ask("absent"), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, "WORKLOAD_NOT_FOUND");
    assert.match(error.message, /absent does not exist/);
    return true;
  });
  await assert.rejects(ask("off"), (error) => error instanceof OpenAI.APIError && error.code === "WORKLOAD_DISABLED");
});

test("a refused key is told at once: the clients do not ask again", async () => {
  await using upstream = await startUpstream((_request, res) => sendJson(res, { error: { message: "no" } }, 401));
  await using gateway = await startGateway({
    gpt: { type: "openai", baseUrl: upstream.baseUrl },
    claude: { type: "anthropic", baseUrl: upstream.baseUrl },
  });
  const messages = [{ role: "user" as const, content: "Hi" }];
  const openai = new OpenAI({ baseURL: `${gateway.url("gpt")}/v1`, apiKey: "platform-key" });
  await assert.rejects(openai.chat.completions.create({ model: "x", messages }), /refused the key/);
  const anthropic = new Anthropic({ baseURL: gateway.url("claude"), apiKey: "platform-key" });
  await assert.rejects(anthropic.messages.create({ model: "x", max_tokens: 5, messages }), /refused the key/);
  assert.equal(upstream.requests.length, 2);
});

test("azure: addressing by deployment and version, as its own client does it", async () => {
  const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };
  const choices = [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }];
  await using upstream = await startUpstream((_request, res) => sendJson(res, { id: "c", choices, usage }));
  await using gateway = await startGateway({
    m: { type: "azure-openai-service", model: "my-deployment", baseUrl: upstream.baseUrl },
  });
  const client = new AzureOpenAI({ endpoint: gateway.url("m"), apiKey: "platform-key", apiVersion: "2024-10-21" });
  const answer = await client.chat.completions.create({ model: "any", messages: [{ role: "user", content: "Hi" }] });
  assert.equal(answer.choices[0]?.message.content, "Hi");
  const [sent] = upstream.requests;
  assert.equal(sent?.url, "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21");
  assert.equal(sent?.headers["api-key"], "stored-key");
  assert.deepEqual(
    (await gateway.recorded(1)).map(({ inputTokens }) => inputTokens),
    [3],
  );
});

test("anthropic: messages, stream, tools, models", async () => {
  await using gateway = await startGateway({ echo: { type: "mock", model: "echo" } });
  const client = anthropicAt(gateway.url("echo"));
  const messages = [{ role: "user" as const, content: "hello there" }];
  const answer = await client.messages.create({ model: "x", max_tokens: 100, messages });
  assert.deepEqual(answer.content, [{ type: "text", text: "hello there", citations: null }]);
  assert.equal(answer.usage.output_tokens, 2);
  const stream = client.messages.stream({ model: "x", max_tokens: 1, messages });
  const final = await stream.finalMessage();
  assert.equal(final.stop_reason, "max_tokens");
  assert.equal(await stream.finalText(), "hello");
  const called = await client.messages.create({
    model: "x",
    max_tokens: 100,
    messages: [{ role: "user", content: "use get_weather" }],
    tools: [{ name: "get_weather", input_schema: WEATHER }],
    tool_choice: { type: "any" },
  });
  assert.equal(called.stop_reason, "tool_use");
  const list = await client.models.list();
  assert.deepEqual(
    list.data.map((model) => model.id),
    ["echo"],
  );
});

/** Recorded streams of the other tongues, put together again by the official client. */
const RECORDED: [type: string, name: string, calls: unknown[], usage: number][] = [
  [
    "anthropic",
    "anthropic/stream-tools",
    [
      ["get_weather", { city: "Paris" }],
      ["now", {}],
    ],
    40,
  ],
  [
    "gemini",
    "gemini/stream-tools",
    [
      ["get_weather", { city: "Paris" }],
      ["get_weather", {}],
    ],
    13,
  ],
];

for (const [type, name, calls, outputTokens] of RECORDED) {
  test(`openai: the stream of ${name} is read as the client's own`, async () => {
    const golden = goldens(type).find((recorded) => recorded.name === name)?.golden;
    assert.ok(golden?.answer.events);
    const text = eventText(golden.answer.events);
    await using upstream = await startUpstream(async (_request, res) => {
      startEvents(res);
      await sendPieces(res, cut(text, 50));
      res.end();
    });
    await using gateway = await startGateway({ m: { type, baseUrl: upstream.baseUrl } });
    const stream = openaiAt(`${gateway.url("m")}/v1`).chat.completions.stream({
      model: "x",
      messages: [{ role: "user", content: "Weather?" }],
      stream_options: { include_usage: true },
    });
    const message = await stream.finalMessage();
    assert.equal(message.content, "Looking.");
    const made = message.tool_calls?.map((call) =>
      call.type === "function" ? [call.function.name, JSON.parse(call.function.arguments)] : null,
    );
    assert.deepEqual(made, calls);
    assert.equal((await stream.totalUsage()).completion_tokens, outputTokens);
  });
}
