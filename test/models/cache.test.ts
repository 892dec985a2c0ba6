/** Kept answers: the same question gets the same answer without a provider, and nobody gets somebody else's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/lib/time/clock.ts";
import { AnswerCache, AnswerRecorder } from "../../src/models/cache/answer-cache.ts";
import { startGateway, type TestGateway } from "./gateway-harness.ts";
import { sendJson, startEvents, startUpstream } from "./upstream-server.ts";

const HOUR = { ttlSeconds: 3600 };
const PRICES = { input: "1", output: "1" };
const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };

/** Every answer has a number, so that a kept one is told from a new one. */
const startNumbered = () =>
  startUpstream((request, res, number) => {
    if (request.json.fail === number) return sendJson(res, { error: { message: "no" } }, 400);
    if (request.json.stream !== true)
      return sendJson(res, { id: `c-${number}`, choices: [{ index: 0, message: { content: "hi" } }], usage });
    startEvents(res);
    const chunk = (content: string, more = {}) =>
      `data: ${JSON.stringify({ id: `c-${number}`, choices: [{ index: 0, delta: { content } }], ...more })}\n\n`;
    res.write(chunk("one"));
    if (request.json.break === number) return void res.destroy();
    res.write(chunk("two"));
    res.end(`data: ${JSON.stringify({ id: `c-${number}`, choices: [], usage })}\n\ndata: [DONE]\n\n`);
  });

async function ask(gateway: TestGateway, model: string, body: object, headers: Record<string, string> = {}) {
  const answer = await fetch(`${gateway.url(model)}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }], ...body }),
  });
  const text = await answer.text().catch(() => "broke off");
  return { text, number: /"id":"c-(\d+)"/.exec(text)?.[1], cache: answer.headers.get("x-service-cache"), answer };
}

test("the same question is answered from memory, streams chunk by chunk, and costs nothing", async () => {
  await using up = await startNumbered();
  const model = { type: "openai", baseUrl: up.baseUrl, prices: PRICES, cache: HOUR };
  await using gateway = await startGateway({ m: model });
  for (const stream of [false, true]) {
    const first = await ask(gateway, "m", { stream });
    const second = await ask(gateway, "m", { stream });
    assert.deepEqual([first.cache, second.cache], ["miss", "hit"]);
    assert.equal(second.text, first.text);
    assert.equal(second.answer.headers.get("age"), "0");
    assert.equal(second.answer.headers.get("content-type"), first.answer.headers.get("content-type"));
  }
  assert.equal(up.requests.length, 2);
  const recorded = await gateway.recorded(4);
  assert.deepEqual(
    recorded.map(({ fromCache, inputTokens, costNanoUsd, outcome }) => [fromCache, inputTokens, costNanoUsd, outcome]),
    [false, true, false, true].map((hit) => [hit, hit ? 0 : 5, hit ? 0 : 12_000, "completed"]),
  );
});

test("another question, caller, model or wish is another answer", async () => {
  await using up = await startNumbered();
  const model = { type: "openai", baseUrl: up.baseUrl, cache: HOUR };
  await using gateway = await startGateway({
    m: model,
    shared: { ...model, cache: { ...HOUR, scope: "model" } },
    plain: { type: "openai", baseUrl: up.baseUrl },
  });
  const numbers: (string | undefined)[] = [];
  const note = async (...asked: [string, object, Record<string, string>?]) =>
    numbers.push((await ask(gateway, ...asked)).number);
  await note("m", {}); // 1
  await note("m", { temperature: 0 }); // 2
  await note("m", {}, { "x-test-key": "other" }); // 3
  await note("m", {}, { "openai-beta": "x=v1" }); // 4
  await note("m", {}, { "user-agent": "another client", "idempotency-key": "k" }); // 1
  await note("m", {}, { "cache-control": "no-store" }); // 5, not kept
  await note("m", {}); // 1
  await note("m", {}, { "cache-control": "no-cache" }); // 6, kept instead
  await note("m", {}); // 6
  await note("shared", {}); // 7
  await note("shared", {}, { "x-test-key": "other" }); // 7
  await note("plain", {}); // 8
  await note("plain", {}); // 9
  assert.deepEqual(numbers, ["1", "2", "3", "4", "1", "5", "1", "6", "6", "7", "7", "8", "9"]);
});

test("failures and answers that break off are not kept, nor are answers that a provider stores", async () => {
  await using up = await startNumbered();
  await using gateway = await startGateway({ m: { type: "openai", baseUrl: up.baseUrl, cache: HOUR } });
  assert.equal((await ask(gateway, "m", { fail: 1 })).answer.status, 400);
  assert.equal((await ask(gateway, "m", { fail: 1 })).number, "2");
  await ask(gateway, "m", { stream: true, break: 3 });
  const whole = await ask(gateway, "m", { stream: true, break: 3 });
  assert.deepEqual([whole.number, whole.cache], ["4", "miss"]);
  assert.match(whole.text, /\[DONE\]/);
  for (const expected of ["5", "6"]) {
    const stored = await ask(gateway, "m", { store: true });
    assert.deepEqual([stored.number, stored.cache], [expected, null]);
  }
});

test("an answer is given again until its time is over", async () => {
  let nowMs = 1_000_000;
  await using up = await startNumbered();
  await using gateway = await startGateway(
    { m: { type: "openai", baseUrl: up.baseUrl, cache: { ttlSeconds: 60 } } },
    { clock: { ...systemClock, now: () => nowMs } },
  );
  const asked = async () => (await ask(gateway, "m", {})).number;
  assert.equal(await asked(), "1");
  nowMs += 59_999;
  assert.equal(await asked(), "1");
  nowMs += 1;
  assert.equal(await asked(), "2");
});

test("memory is bounded, for each workspace too, and the longest unused answer goes first", () => {
  const cache = new AnswerCache(() => 0);
  const answer = { status: 200, headers: [], chunks: [Buffer.alloc(1024 * 1024)] };
  for (let n = 0; n < 100; n += 1) {
    cache.keep("greedy", `k-${n}`, answer);
    cache.find("greedy", "k-0", HOUR);
  }
  assert.ok(cache.bytes <= 16 * 1024 * 1024);
  assert.ok(cache.find("greedy", "k-0", HOUR) && cache.find("greedy", "k-99", HOUR));
  assert.equal(cache.find("greedy", "k-1", HOUR), null);
  assert.equal(cache.find("other", "k-0", HOUR), null);
  for (let w = 0; w < 40; w += 1) for (let n = 0; n < 4; n += 1) cache.keep(`w-${w}`, `k-${n}`, answer);
  assert.ok(cache.bytes <= 64 * 1024 * 1024);
});

test("an answer that comes byte by byte counts with what its chunks cost", () => {
  const byte = Buffer.from("x");
  const cache = new AnswerCache(() => systemClock.now());
  cache.keep("w", "k", { status: 200, headers: [], chunks: Array<Buffer>(1000).fill(byte) });
  assert.ok(cache.bytes >= 100_000, `1,000 chunks count as ${cache.bytes} bytes`);
  const recorder = new AnswerRecorder();
  const nowhere = { onHead() {}, onData() {}, onReadEnd() {}, onEnd() {}, onError() {} };
  const upstream = recorder.record({
    basePath: "",
    send(_, sink) {
      sink.onHead(200, []);
      for (let n = 0; n < 20_000; n += 1) sink.onData(byte);
      return { sent: true, pause() {}, resume() {}, abort() {} };
    },
  });
  upstream.send({ method: "POST", path: "/", fields: "", body: null }, nowhere);
  assert.equal(recorder.take(), null);
});
