/**
 * One suite for every provider: the golden exchanges of the tongue it speaks, over real sockets, with its streams cut
 * into pieces of every kind, and the same trouble for all.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PROVIDERS } from "../../src/models/providers/catalogue.ts";
import { startGateway, type TestGateway, type TestModel } from "./gateway-harness.ts";
import { eventText, type Golden, goldens, parseEvents, saveGolden, updating } from "./golden.ts";
import { cut, sendJson, sendPieces, startEvents, startUpstream, type UpstreamServer } from "./upstream-server.ts";

interface Conformer {
  provider: string;
  /** Folders of golden exchanges that it must pass. */
  sets: string[];
  /** Where the chat endpoint is, and how the key arrives. */
  chatPath: string;
  auth: [string, string];
  model?: Partial<TestModel>;
}

const bearer: [string, string] = ["authorization", "Bearer stored-key"];

const CONFORMERS: Conformer[] = [
  { provider: "openai", sets: ["openai-like", "openai"], chatPath: "/v1/chat/completions", auth: bearer },
  { provider: "groq", sets: ["openai-like", "groq"], chatPath: "/openai/v1/chat/completions", auth: bearer },
  { provider: "xai", sets: ["openai-like", "xai"], chatPath: "/v1/chat/completions", auth: bearer },
  { provider: "deepseek", sets: ["openai-like", "deepseek"], chatPath: "/v1/chat/completions", auth: bearer },
  { provider: "cerebras", sets: ["openai-like"], chatPath: "/v1/chat/completions", auth: bearer },
  { provider: "huggingface", sets: ["openai-like"], chatPath: "/v1/chat/completions", auth: bearer },
  { provider: "openai-compatible", sets: ["openai-like"], chatPath: "/v1/chat/completions", auth: bearer },
  {
    provider: "azure-openai-service",
    sets: ["openai-like"],
    chatPath: "/openai/v1/chat/completions",
    auth: ["api-key", "stored-key"],
  },
  { provider: "mistral", sets: ["mistral"], chatPath: "/v1/chat/completions", auth: bearer },
  { provider: "cohere", sets: ["cohere"], chatPath: "/compatibility/v1/chat/completions", auth: bearer },
  { provider: "anthropic", sets: ["anthropic"], chatPath: "/v1/messages", auth: ["x-api-key", "stored-key"] },
  {
    provider: "gemini",
    sets: ["gemini"],
    chatPath: "/v1beta/models/the-model:generateContent",
    auth: ["x-goog-api-key", "stored-key"],
  },
];

test("every provider that has a network is in this suite", () => {
  const covered = CONFORMERS.map(({ provider }) => provider).sort();
  const shipped = PROVIDERS.filter((provider) => !provider.local).map((provider) => provider.name);
  assert.deepEqual(covered, shipped.sort());
});

for (const conformer of CONFORMERS) {
  for (const { name, file, golden } of conformer.sets.flatMap(goldens)) {
    test(`${conformer.provider}: ${name}`, () => conforms(conformer, golden, file));
  }
}

/** The piece sizes a stream is sent in: all at once, oddly, and byte by byte. */
const PIECE_SIZES = [Number.MAX_SAFE_INTEGER, 7, 1];

async function conforms(conformer: Conformer, golden: Golden, file: string): Promise<void> {
  for (const size of golden.answer.events ? PIECE_SIZES : PIECE_SIZES.slice(0, 1)) {
    await using upstream = await startUpstream(async (_request, res) => {
      const { status, body, events, headers } = golden.answer;
      if (!events) return sendJson(res, body, status, headers);
      startEvents(res, status);
      await sendPieces(res, cut(eventText(events), size));
      res.end();
    });
    await using gateway = await startGateway({ m: modelOf(conformer, upstream) });
    const actual = await exchange(gateway, upstream, golden);
    if (updating) {
      golden.upstream.body = actual.upstream.body;
      golden.response = actual.response;
      golden.usage = actual.usage;
      saveGolden(file, golden);
    }
    const expectedPath = golden.upstream.path
      .replace("{chat}", conformer.chatPath)
      .replace("{embeddings}", conformer.chatPath.replace("chat/completions", "embeddings"));
    assert.equal(actual.upstream.path, expectedPath);
    assert.deepEqual(actual.upstream.body, golden.upstream.body);
    for (const [header, value] of [conformer.auth, ...Object.entries(golden.upstream.headers ?? {})]) {
      assert.equal(actual.upstream.headers[header], value, header);
    }
    assert.equal(actual.upstream.headers["accept-encoding"], "identity");
    assert.ok(!JSON.stringify(actual.upstream.headers).includes("caller-secret"), "the caller's credentials stay here");
    assert.deepEqual(actual.response, golden.response);
    assert.deepEqual(actual.usage, golden.usage);
  }
}

function modelOf(conformer: Conformer, upstream: UpstreamServer): TestModel {
  return { type: conformer.provider, model: "the-model", baseUrl: upstream.baseUrl, ...conformer.model };
}

async function exchange(
  gateway: TestGateway,
  upstream: UpstreamServer,
  golden: Golden,
): Promise<Golden & { upstream: { headers: Record<string, unknown> } }> {
  const response = await fetch(gateway.url("m") + golden.request.path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: "Bearer caller-secret",
      "x-service-authorization": "Bearer caller-secret",
      "x-api-key": "caller-secret",
      cookie: "session=caller-secret",
      ...golden.request.headers,
    },
    body: JSON.stringify(golden.request.body),
  });
  const text = await response.text();
  const [received] = upstream.requests;
  assert.ok(received);
  const [event] = await gateway.recorded(1);
  assert.ok(event);
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens, estimated, outcome } = event;
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  return {
    ...golden,
    upstream: { path: received.url, body: received.json, headers: received.headers as Record<string, string> },
    response: isStream
      ? { status: response.status, events: steady(parseEvents(text)) as never }
      : { status: response.status, body: steady(JSON.parse(text)) },
    usage: { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens, estimated, outcome },
  };
}

/** Translated answers carry the time of translation; everything else is fixed. */
function steady(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(steady);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === "created" && Math.abs(Number(inner) - Date.now() / 1000) < 3600 ? "(now)" : steady(inner),
    ]),
  );
}
