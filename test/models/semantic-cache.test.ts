/** Kept answers for questions that mean the same, by the embeddings of another model of the workspace. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CacheRules } from "../../src/contract/model-cache.ts";
import { meaningOf, similarityOf } from "../../src/models/cache/meaning.ts";
import { startGateway, type TestGateway, type TestModel } from "./gateway-harness.ts";
import { sendJson, startEvents, startUpstream } from "./upstream-server.ts";

const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };

/** A text about rain points one way, one about cats another; politeness turns a little. */
function vectorOf(text: string): number[] {
  const about = (word: string): number => (text.toLowerCase().includes(word) ? 1 : 0);
  return [about("rain"), about("cat"), about("please") * 0.1, 0.01];
}

/** Answers are numbered; embeddings are asked for at the same provider. */
const startProvider = () => {
  let answers = 0;
  return startUpstream(({ url, json }, res) => {
    if (url === "/v1/embeddings") {
      const text = String(json.input);
      if (text.includes("broken")) return sendJson(res, { error: { message: "no" } }, 400);
      return sendJson(res, {
        data: [{ index: 0, embedding: vectorOf(text) }],
        usage: { prompt_tokens: 3, total_tokens: 3 },
      });
    }
    answers += 1;
    const id = `c-${answers}`;
    if (json.stream !== true)
      return sendJson(res, { id, type: "message", choices: [{ index: 0, message: { content: "hi" } }], usage });
    startEvents(res);
    res.write(`data: ${JSON.stringify({ id, choices: [{ index: 0, delta: { content: "hi" } }] })}\n\n`);
    res.end(`data: ${JSON.stringify({ id, choices: [], usage })}\n\ndata: [DONE]\n\n`);
  });
};

const RULES: CacheRules = { ttlSeconds: 3600, semantic: { model: "near", threshold: 0.9 } };

const modelsAt = (baseUrl: string, cache: CacheRules = RULES): Record<string, TestModel> => ({
  m: { type: "openai", baseUrl, cache },
  near: { type: "openai", model: "text-embedding-3-small", baseUrl },
});

async function ask(gateway: TestGateway, text: unknown, more: object = {}, headers: Record<string, string> = {}) {
  const answer = await fetch(`${gateway.url("m")}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ messages: [{ role: "user", content: text }], ...more }),
  });
  const number = /"id":"c-(\d+)"/.exec(await answer.text())?.[1];
  const field = (name: string) => answer.headers.get(`x-service-cache${name}`);
  return { number, cache: field(""), similarity: field("-similarity") };
}

test("a question with the same meaning gets the kept answer, and both are counted apart", async () => {
  await using provider = await startProvider();
  await using gateway = await startGateway(modelsAt(provider.baseUrl));
  for (const stream of [false, true]) {
    const first = await ask(gateway, "Will it rain?", { stream });
    const polite = await ask(gateway, "Please, will it rain?", { stream });
    const same = await ask(gateway, "Will it rain?", { stream });
    const other = await ask(gateway, "Where is my cat?", { stream });
    assert.deepEqual([first.cache, polite.cache, same.cache, other.cache], ["miss", "similar", "hit", "miss"]);
    assert.deepEqual([polite.number, same.number], [first.number, first.number]);
    assert.notEqual(other.number, first.number);
    assert.ok(Number(polite.similarity) > 0.98 && Number(polite.similarity) < 1);
    assert.equal(same.similarity, null);
  }
  const of = (model: string) => gateway.usage.filter((one) => one.model === model);
  assert.deepEqual(
    of("m").map(({ fromCache, fromSimilar, outputTokens }) => [fromCache, fromSimilar, outputTokens]),
    [...TURNS, ...TURNS],
  );
  // The exact hit needs no embedding.
  assert.deepEqual(
    of("near").map(({ inputTokens, subject }) => [inputTokens, subject?.id]),
    Array.from({ length: 6 }, () => [3, "key-1"]),
  );
});

const TURNS = [
  [false, false, 7],
  [false, true, 0],
  [true, false, 0],
  [false, false, 7],
];

test("whatever else differs is another question: caller, system, history, settings, numbers, wishes", async () => {
  await using provider = await startProvider();
  await using gateway = await startGateway(modelsAt(provider.baseUrl));
  const near = "Please, will it rain?";
  await ask(gateway, "Will it rain?");
  const system = { role: "system", content: "You are a pirate." };
  const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  const askers: [string, () => ReturnType<typeof ask>][] = [
    ["caller", () => ask(gateway, near, {}, { "x-test-key": "key-2" })],
    ["settings", () => ask(gateway, near, { temperature: 1 })],
    ["history", () => ask(gateway, near, { messages: [system, { role: "user", content: near }] })],
    ["picture", () => ask(gateway, [{ type: "text", text: near }, picture])],
    ["tool result", () => ask(gateway, near, { messages: [{ role: "tool", tool_call_id: "t", content: near }] })],
    ["numbers", () => ask(gateway, "Will it rain on day 2?")],
    ["a new answer is wanted", () => ask(gateway, near, {}, { "cache-control": "no-cache" })],
  ];
  for (const [what, again] of askers) assert.equal((await again()).cache, "miss", what);
  assert.equal((await ask(gateway, near, {}, { "cache-control": "no-store" })).cache, null);
});

test("answers cross callers only where the setting says so, and end with their age", async () => {
  let nowMs = 1_000_000;
  const clock = { now: () => nowMs };
  await using provider = await startProvider();
  await using gateway = await startGateway(modelsAt(provider.baseUrl, { ...RULES, scope: "model" }), { clock });
  const first = await ask(gateway, "Will it rain?");
  const theirs = await ask(gateway, "Please, will it rain?", {}, { "x-test-key": "key-2" });
  assert.deepEqual([theirs.cache, theirs.number], ["similar", first.number]);
  nowMs += 3600_000;
  assert.equal((await ask(gateway, "Please, will it rain?")).cache, "miss");
});

test("without an embedding a request is served as if it were new", async () => {
  await using provider = await startProvider();
  const { m, near } = modelsAt(provider.baseUrl) as { m: TestModel; near: TestModel };
  const capped = { name: "cap", type: "maxToken", maxTokens: { granularity: "day", step: 1, requests: 1 } };
  await using gateway = await startGateway({ m, near: { ...near, policies: [capped] } });
  assert.equal((await ask(gateway, "Is the rain broken?")).cache, "miss");
  assert.equal((await ask(gateway, "Will it rain?")).cache, "miss", "the cap of the other model is reached");
  assert.equal((await ask(gateway, "Will it rain?")).cache, "hit", "kept for the same request all the same");
});

test("what is no embedding has no meaning", () => {
  for (const wrong of [null, "1", [], [0, 0], ["1"], [Number.NaN], [1e300, 1e300], new Array(9000).fill(1)])
    assert.equal(meaningOf("f", "text", wrong), null);
  const [one, other] = [meaningOf("f", "in 2019", [1, 1]), meaningOf("f", "in 2020", [1, 1])];
  assert.ok(one && other);
  assert.equal(similarityOf(one, other), -1);
  assert.ok(similarityOf(one, one) > 0.999);
});
