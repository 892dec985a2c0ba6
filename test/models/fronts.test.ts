/** The Responses and Messages APIs, by their official clients, on providers that have neither. */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { answerMock } from "../../src/models/providers/mock/provider.ts";
import { startGateway, type TestGateway, type TestModel } from "./gateway-harness.ts";
import { nativeAnswer } from "./native-apis.ts";
import { type ReceivedRequest, sendJson, sendPieces, startEvents, startUpstream } from "./upstream-server.ts";

const openaiAt = (url: string): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: "platform-key", maxRetries: 0 });
const anthropicAt = (url: string): Anthropic => new Anthropic({ baseURL: url, apiKey: "platform-key", maxRetries: 0 });

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WEATHER = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] };
const ASK = 'call get_weather {"city":"Paris"}';

/** A provider's server that answers in its own tongue what the development provider would. */
async function provider(request: ReceivedRequest, res: ServerResponse): Promise<void> {
  if (request.url.includes(":")) return geminiAnswer(request, res);
  // Counts come with every stream, as they do from those who refuse to be asked for them.
  const body = Buffer.from(JSON.stringify({ ...request.json, stream_options: { include_usage: true } }));
  const { status, contentType, chunks } =
    nativeAnswer(request.url, request.json) ??
    answerMock({ method: request.method, path: request.url, body, nowMs: 0 });
  if (!contentType.startsWith("text/event-stream")) return sendJson(res, chunks.join(""), status);
  startEvents(res);
  await sendPieces(res, chunks);
  res.end();
}

/** Echoes, or calls the first tool with the text's own arguments, with a signature that must come back. */
async function geminiAnswer({ url, json }: ReceivedRequest, res: ServerResponse): Promise<void> {
  type Part = { text?: string; functionResponse?: { response: unknown } };
  const contents = json.contents as { parts: Part[] }[];
  const last = contents.at(-1)?.parts ?? [];
  const result = last.find((part) => part.functionResponse)?.functionResponse;
  const text = result ? JSON.stringify(result.response) : last.map((part) => part.text ?? "").join("");
  const args = /\{.*\}/.exec(text)?.[0];
  const called = json.tools && !result && args;
  const parts = called
    ? [{ functionCall: { name: "get_weather", args: JSON.parse(args) }, thoughtSignature: "c2lnbmVk" }]
    : [{ text }];
  const answer = {
    responseId: "r1",
    modelVersion: "gemini-x",
    candidates: [{ index: 0, content: { role: "model", parts }, finishReason: "STOP" }],
    usageMetadata: { promptTokenCount: 2, candidatesTokenCount: 3, totalTokenCount: 5 },
  };
  if (!url.includes(":stream")) return sendJson(res, answer);
  startEvents(res);
  await sendPieces(res, [`data: ${JSON.stringify(answer)}\r\n\r\n`]);
  res.end();
}

const WITHOUT_RESPONSES = ["anthropic", "gemini", "mistral", "deepseek", "cerebras", "cohere", "huggingface", "vllm"];
const WITHOUT_MESSAGES = ["openai", "gemini", "mistral", "deepseek", "groq", "xai", "cohere", "huggingface", "vllm"];

const models = (names: readonly string[], baseUrl: string): Record<string, TestModel> =>
  Object.fromEntries(names.map((type) => [type, { type, model: `${type}-model`, baseUrl }]));

test("responses: text, streams, tools and images on every provider that has no such API", async (t) => {
  await using upstream = await startUpstream(provider);
  await using gateway = await startGateway(models(WITHOUT_RESPONSES, upstream.baseUrl));
  const tools = [{ type: "function" as const, name: "get_weather", parameters: WEATHER, strict: false }];

  for (const name of WITHOUT_RESPONSES) {
    await t.test(name, async () => {
      const client = openaiAt(gateway.url(name));
      const whole = await client.responses.create({ model: "x", input: "hello there", max_output_tokens: 50 });
      assert.deepEqual([whole.output_text, whole.status], ["hello there", "completed"]);
      assert.ok((whole.usage?.input_tokens ?? 0) > 0 && (whole.usage?.output_tokens ?? 0) > 0);

      const stream = client.responses.stream({ model: "x", instructions: "Be brief.", input: "one two three" });
      const types = new Set<string>();
      for await (const event of stream) types.add(event.type);
      const streamed = await stream.finalResponse();
      assert.deepEqual([streamed.output_text, streamed.status], ["one two three", "completed"]);
      assert.ok((streamed.usage?.output_tokens ?? 0) > 0, "the count comes with the last event");
      for (const type of ["response.created", "response.output_text.delta", "response.output_item.done"])
        assert.ok(types.has(type), type);

      const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: ASK }];
      for (const isStream of [false, true]) {
        const answer = isStream
          ? await client.responses.stream({ model: "x", input, tools }).finalResponse()
          : await client.responses.create({ model: "x", input, tools });
        const call = answer.output.find(
          (item) => item.type === "function_call",
        ) as OpenAI.Responses.ResponseFunctionToolCall;
        assert.deepEqual([call.name, JSON.parse(call.arguments)], ["get_weather", { city: "Paris" }]);
        const result = {
          type: "function_call_output" as const,
          call_id: call.call_id,
          output: '{"sky":"blue"}',
        };
        const next = [...input, ...answer.output, result] as OpenAI.Responses.ResponseInput;
        const after = await client.responses.create({ model: "x", input: next, tools });
        assert.match(after.output_text, /blue/);
        if (name === "gemini")
          assert.match(upstream.requests.at(-1)?.body ?? "", /c2lnbmVk/, "the signature of the call comes back");
      }

      const image = {
        type: "input_image" as const,
        detail: "auto" as const,
        image_url: `data:image/png;base64,${PIXEL}`,
      };
      await client.responses.create({
        model: "x",
        input: [{ role: "user", content: [{ type: "input_text", text: "What is it?" }, image] }],
      });
      assert.ok(upstream.requests.at(-1)?.body.includes(PIXEL), "the image reaches the provider");
    });
  }
});

test("messages: text, streams, tools and images on every provider that has no such API", async (t) => {
  await using upstream = await startUpstream(provider);
  await using gateway = await startGateway(models(WITHOUT_MESSAGES, upstream.baseUrl));
  const tools = [{ name: "get_weather", input_schema: WEATHER }];
  const base = { model: "x", max_tokens: 100 };
  const user = (content: Anthropic.MessageParam["content"]): Anthropic.MessageParam => ({ role: "user", content });

  for (const name of WITHOUT_MESSAGES) {
    await t.test(name, async () => {
      const client = anthropicAt(gateway.url(name));
      const whole = await client.messages.create({ ...base, messages: [user("hello there")] });
      assert.deepEqual([textOf(whole), whole.stop_reason], ["hello there", "end_turn"]);
      assert.ok(whole.usage.input_tokens > 0 && whole.usage.output_tokens > 0);

      const asked = { ...base, system: "Be brief.", messages: [user("one two three")] };
      const streamed = await client.messages.stream(asked).finalMessage();
      assert.equal(textOf(streamed), "one two three");
      assert.ok(streamed.usage.output_tokens > 0, "the count comes with the last event");

      for (const isStream of [false, true]) {
        const first = { ...base, tools, messages: [user(ASK)] };
        const answer = await (isStream ? client.messages.stream(first).finalMessage() : client.messages.create(first));
        const call = answer.content.find((block) => block.type === "tool_use");
        assert.deepEqual([call?.name, call?.input, answer.stop_reason], ["get_weather", { city: "Paris" }, "tool_use"]);
        const result = { type: "tool_result" as const, tool_use_id: call?.id ?? "", content: '{"sky":"blue"}' };
        const messages = [user(ASK), { role: "assistant" as const, content: answer.content }, user([result])];
        assert.match(textOf(await client.messages.create({ ...base, tools, messages })), /blue/);
        if (name === "gemini") assert.match(upstream.requests.at(-1)?.body ?? "", /c2lnbmVk/);
      }

      const source = { type: "base64" as const, media_type: "image/png" as const, data: PIXEL };
      const image = user([
        { type: "image", source },
        { type: "text", text: "What is it?" },
      ]);
      await client.messages.create({ ...base, messages: [image] });
      assert.ok(upstream.requests.at(-1)?.body.includes(PIXEL), "the image reaches the provider");

      const counted = await client.messages.countTokens({ model: "x", messages: [user("hello there")] });
      assert.ok(counted.input_tokens > 0);
    });
  }
});

const textOf = ({ content }: Anthropic.Message): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");

test("counts, costs and caps are those of the same question in chat", async () => {
  await using upstream = await startUpstream(provider);
  const cap = { name: "cap", type: "maxToken", maxTokens: { granularity: "day", step: 1, output: 12 } };
  await using gateway = await startGateway({
    free: { type: "mistral", baseUrl: upstream.baseUrl },
    capped: { type: "mistral", baseUrl: upstream.baseUrl, policies: [cap as never] },
  });
  for (const stream of [false, true]) {
    gateway.usage.length = 0;
    await askAllThree(gateway, "free", stream);
    const [chat, ...others] = await gateway.recorded(3);
    for (const other of others) {
      assert.deepEqual(
        [other.inputTokens, other.outputTokens, other.costNanoUsd, other.estimated, other.outcome, other.stream],
        [chat?.inputTokens, chat?.outputTokens, chat?.costNanoUsd, false, "completed", stream],
      );
    }
  }
  // Six tokens may come of each: the third does not fit.
  const statuses = await askAllThree(gateway, "capped", false);
  assert.deepEqual(statuses, [200, 200, 429]);
});

async function askAllThree(gateway: TestGateway, model: string, stream: boolean): Promise<number[]> {
  const messages = [{ role: "user", content: "one two three four five six" }];
  const bodies: [string, object][] = [
    ["chat/completions", { messages, max_tokens: 6 }],
    ["responses", { input: messages, max_output_tokens: 6 }],
    ["messages", { messages, max_tokens: 6 }],
  ];
  const statuses: number[] = [];
  for (const [path, body] of bodies) {
    const answer = await fetch(`${gateway.url(model)}/v1/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "x", stream, ...body }),
    });
    await answer.text();
    statuses.push(answer.status);
  }
  return statuses;
}

test("errors, broken streams and what cannot be translated are told in the caller's own API", async (t) => {
  await using upstream = await startUpstream(async (request, res) => {
    if (!request.json.stream) return sendJson(res, { error: { message: "too long", type: "bad" } }, 400);
    startEvents(res);
    const chunk = { id: "c", model: "m", choices: [{ index: 0, delta: { content: "half" }, finish_reason: null }] };
    await sendPieces(res, [`data: ${JSON.stringify(chunk)}\n\n`]);
    res.destroy();
  });
  await using gateway = await startGateway(models(["mistral"], upstream.baseUrl));
  const [openai, anthropic] = [openaiAt(gateway.url("mistral")), anthropicAt(gateway.url("mistral"))];
  const messages = [{ role: "user" as const, content: "hi" }];

  await t.test("an error of the provider", async () => {
    const byResponses = await openai.responses.create({ model: "x", input: "hi" }).catch((error) => error);
    assert.ok(byResponses instanceof OpenAI.BadRequestError);
    assert.match(byResponses.message, /too long/);
    const byMessages = await anthropic.messages.create({ model: "x", max_tokens: 5, messages }).catch((error) => error);
    assert.ok(byMessages instanceof Anthropic.BadRequestError);
    const { error } = byMessages.error as { error: { type: string; message: string } };
    assert.deepEqual(error, { type: "invalid_request_error", message: "too long" });
  });

  await t.test("a stream that breaks off", async () => {
    const read = async (stream: AsyncIterable<unknown>): Promise<void> => {
      for await (const _ of stream);
    };
    const types: string[] = [];
    for await (const event of await openai.responses.create({ model: "x", input: "hi", stream: true }))
      types.push(event.type);
    assert.equal(types.at(-1), "error");
    const told = anthropic.messages.create({ model: "x", max_tokens: 5, messages, stream: true });
    await assert.rejects(async () => read(await told), Anthropic.APIError);
  });

  await t.test("what cannot be translated", async () => {
    const before = upstream.requests.length;
    const wrong: OpenAI.Responses.ResponseCreateParamsNonStreaming[] = [
      { model: "x", input: "hi", previous_response_id: "resp_1" },
      { model: "x", input: "hi", background: true },
      { model: "x", input: "hi", tools: [{ type: "web_search" }] },
      { model: "x", input: [{ type: "item_reference", id: "msg_1" }] },
    ];
    for (const body of wrong) await assert.rejects(openai.responses.create(body), /cannot be translated/);
    const tools = [{ type: "web_search_20250305" as const, name: "web_search" as const }];
    await assert.rejects(
      anthropic.messages.create({ model: "x", max_tokens: 5, messages, tools }),
      /cannot be translated/,
    );
    assert.equal(upstream.requests.length, before, "nothing was asked");
  });
});

test("a server that has the API itself is asked in it when its connection says so", async () => {
  await using upstream = await startUpstream(provider);
  const config = { nativeDialects: "openai-responses, anthropic-messages" };
  await using gateway = await startGateway({ m: { type: "vllm", baseUrl: upstream.baseUrl, config } });
  await openaiAt(gateway.url("m")).responses.create({ model: "x", input: "hi" });
  await anthropicAt(gateway.url("m")).messages.create({
    model: "x",
    max_tokens: 5,
    messages: [{ role: "user", content: "hi" }],
  });
  assert.deepEqual(
    upstream.requests.map(({ url }) => url),
    ["/v1/responses", "/v1/messages"],
  );
});

test("the development provider counts tokens as its answers do; of other providers the count is an estimate", async () => {
  await using gateway = await startGateway({ echo: { type: "mock" }, ...models(["mistral"], "http://127.0.0.1:1") });
  const question = { model: "x", system: "be brief", messages: [{ role: "user" as const, content: "one two three" }] };
  const client = anthropicAt(gateway.url("echo"));
  const counting = await client.messages.countTokens(question).withResponse();
  const { usage } = await client.messages.create({ ...question, max_tokens: 100 });
  assert.deepEqual([counting.data.input_tokens, usage.input_tokens], [5, 5]);
  assert.equal(counting.response.headers.get("x-service-estimated"), null);
  const guessing = await anthropicAt(gateway.url("mistral")).messages.countTokens(question).withResponse();
  assert.ok(guessing.data.input_tokens > 0);
  assert.equal(guessing.response.headers.get("x-service-estimated"), "true");
});

test("the development provider draws and embeds", async () => {
  await using gateway = await startGateway({ echo: { type: "mock" } });
  const openai = openaiAt(gateway.url("echo"));
  const drawn = await openai.images.generate({ model: "x", prompt: "a red square", size: "512x512", n: 2 });
  assert.equal(drawn.data?.length, 2);
  const png = Buffer.from(drawn.data?.[0]?.b64_json ?? "", "base64");
  assert.deepEqual([png.toString("latin1", 1, 4), png.readUInt32BE(16), png.readUInt32BE(20)], ["PNG", 512, 512]);
  assert.deepEqual(
    drawn.data?.[0],
    (await openai.images.generate({ model: "x", prompt: "a red square", size: "512x512" })).data?.[0],
  );
  assert.equal((await openai.embeddings.create({ model: "x", input: "text" })).data.length, 1);
});

test("the development provider refuses in Responses and Messages what the guide says is refused", async () => {
  await using gateway = await startGateway({ echo: { type: "mock" } });
  const user = [{ role: "user", content: "hi" }];
  const refused: [path: string, body: Record<string, unknown>][] = [
    ["/v1/responses", { input: "hi", previous_response_id: "resp_1" }],
    ["/v1/responses", { input: "hi", conversation: "conv_1" }],
    ["/v1/responses", { input: "hi", prompt: { id: "pmpt_1" } }],
    ["/v1/responses", { input: "hi", background: true }],
    ["/v1/responses", { input: "hi", top_logprobs: 2 }],
    ["/v1/responses", { input: "hi", tools: [{ type: "web_search" }] }],
    ["/v1/responses", { input: [{ role: "user", content: [{ type: "input_file", file_id: "file_1" }] }] }],
    ["/v1/messages", { messages: user, max_tokens: 5, tools: [{ type: "web_search_20250305", name: "web_search" }] }],
    ["/v1/messages", { messages: user, max_tokens: 5, mcp_servers: [{ type: "url", url: "http://x", name: "x" }] }],
    ["/v1/messages/count_tokens", { messages: user, mcp_servers: [{ type: "url", url: "http://x", name: "x" }] }],
  ];
  for (const [path, body] of refused) {
    const answer = await fetch(`${gateway.url("echo")}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    assert.equal(answer.status, 400, `${path} ${JSON.stringify(body)}`);
    assert.match(await answer.text(), /cannot be translated/);
  }
  const stored = await openaiAt(gateway.url("echo")).responses.create({ model: "x", input: "hi", store: true });
  assert.equal("store" in stored && stored.store, false);
});
