/** A balance divides requests between providers, leaves out those that fail, and no limit is got around by it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { BalanceRules } from "../../src/contract/model-balance.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { startGateway, type TestGateway, type TestModel } from "./gateway-harness.ts";
import { type Answer, sendJson, startEvents, startUpstream, type UpstreamServer } from "./upstream-server.ts";

const usage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };
const CHAT = "/v1/chat/completions";
const DOWN = { error: { message: "overloaded" } };

const answering =
  (id: string): Answer =>
  (request, res) => {
    if (request.json.stream !== true) return sendJson(res, { id, choices: [], usage });
    startEvents(res);
    res.end(`data: ${JSON.stringify({ id, choices: [], usage })}\n\ndata: [DONE]\n\n`);
  };

interface Asked {
  path?: string;
  body?: object;
  headers?: Record<string, string>;
}

async function ask(gateway: TestGateway, { path = CHAT, body = {}, headers = {} }: Asked = {}) {
  const answer = await fetch(gateway.url("m") + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ max_tokens: 10, messages: [{ role: "user", content: "hello" }], ...body }),
  });
  const text = await answer.text();
  const { headers: told } = answer;
  return { status: answer.status, text, by: told.get("x-service-model"), attempts: told.get("x-service-attempts") };
}

async function askTimes(gateway: TestGateway, times: number, asked?: Asked): Promise<(string | null)[]> {
  const found: (string | null)[] = [];
  for (let n = 0; n < times; n += 1) found.push((await ask(gateway, asked)).by);
  return found;
}

const at = (up: UpstreamServer, more: Partial<TestModel> = {}): TestModel => ({
  type: "openai",
  baseUrl: up.baseUrl,
  ...more,
});

/** `m` has no provider of its own: only its members are asked. */
const over = (names: string[], rules: Partial<BalanceRules> = {}, more: Partial<TestModel> = {}): TestModel => ({
  type: "openai",
  balance: { weight: 0, models: names.map((name) => ({ name })), ...rules },
  ...more,
});

/** Time that stands still unless the test moves it, and chance that the test decides. */
function controls() {
  const held = { nowMs: 1_000_000, chance: 0 };
  const overrides = { clock: { ...systemClock, now: () => held.nowMs }, random: () => held.chance };
  return { held, overrides };
}

test("requests are divided by weight, and counted as the model that was asked", async () => {
  await using a = await startUpstream(answering("a"));
  await using b = await startUpstream(answering("b"));
  const { held, overrides } = controls();
  const prices = { input: "1", output: "1" };
  await using gateway = await startGateway(
    { m: at(a, { balance: { weight: 3, models: [{ name: "b" }] } }), b: at(b, { prices }) },
    overrides,
  );
  const served: (string | null)[] = [];
  for (held.chance of [0, 0.25, 0.5, 0.74, 0.75, 0.99]) served.push((await ask(gateway)).by);
  assert.deepEqual(served, ["m", "m", "m", "m", "b", "b"]);
  const last = (await gateway.recorded(6)).at(-1);
  assert.deepEqual([last?.model, last?.modelUid, last?.servedBy], ["m", "uid-of-m", "b"]);
  assert.equal(last?.costNanoUsd, 12_000, "at the price of the model that served");
});

test("a member that fails is asked once, then left out; after its time one request tries it", async () => {
  let isDown = true;
  await using bad = await startUpstream((request, res, number) =>
    isDown ? sendJson(res, DOWN, 503) : answering("bad")(request, res, number),
  );
  await using good = await startUpstream(answering("good"));
  const { held, overrides } = controls();
  await using gateway = await startGateway({ m: over(["bad", "good"]), bad: at(bad), good: at(good) }, overrides);
  const first = await ask(gateway);
  assert.deepEqual([first.status, first.by, first.attempts], [200, "good", "2"], "no caller sees the failure");
  assert.deepEqual(await askTimes(gateway, 5), Array(5).fill("good"));
  assert.equal(bad.requests.length, 3, "three failures in a row eject");
  held.nowMs += 10_000;
  assert.deepEqual(await askTimes(gateway, 3), Array(3).fill("good"));
  assert.equal(bad.requests.length, 4, "one trial");
  isDown = false;
  held.nowMs += 20_000;
  assert.deepEqual(await askTimes(gateway, 2), ["bad", "bad"]);
  assert.equal(gateway.logs.filter(({ message }) => message.includes("left out of its balances")).length, 2);
});

test("Retry-After, a refused key, a closed port and a stream that breaks off are failures of a member", async () => {
  const troubles: Record<string, Answer> = {
    busy: (_, res) => sendJson(res, DOWN, 429, { "retry-after": "5" }),
    keyless: (_, res) => sendJson(res, DOWN, 401),
    closed: (_, res) => void res.destroy(),
  };
  for (const [name, answer] of Object.entries(troubles)) {
    await using bad = await startUpstream(answer);
    await using good = await startUpstream(answering("good"));
    const { overrides } = controls();
    const models = { m: over(["bad", "good"]), bad: at(bad), good: at(good) };
    await using gateway = await startGateway(models, overrides);
    assert.deepEqual(await askTimes(gateway, 6), Array(6).fill("good"), name);
    assert.equal(bad.requests.length, name === "busy" ? 1 : 3, name);
  }
  await using breaking = await startUpstream((_, res) => {
    startEvents(res);
    res.write('data: {"id":"x","choices":[]}\n\n', () => res.destroy());
  });
  await using good = await startUpstream(answering("good"));
  const { overrides } = controls();
  const models = { m: over(["breaking", "good"]), breaking: at(breaking), good: at(good) };
  await using gateway = await startGateway(models, overrides);
  const served = await askTimes(gateway, 5, { body: { stream: true } });
  assert.deepEqual(served, ["breaking", "breaking", "breaking", "good", "good"], "what has begun is not asked again");
});

test("callers cannot eject a member: bad requests and hang-ups do not count", async () => {
  let hangs = false;
  await using a = await startUpstream((request, res, number) => {
    if (request.json.bad) return sendJson(res, { error: { message: "no such thing" } }, 400);
    if (!hangs) return answering("a")(request, res, number);
  });
  await using b = await startUpstream(answering("b"));
  const { overrides } = controls();
  await using gateway = await startGateway({ m: over(["a", "b"]), a: at(a), b: at(b) }, overrides);
  for (let n = 0; n < 4; n += 1) assert.equal((await ask(gateway, { body: { bad: true } })).status, 400);
  hangs = true;
  for (let n = 1; n <= 4; n += 1) {
    const gone = new AbortController();
    const asked = fetch(gateway.url("m") + CHAT, { method: "POST", body: "{}", signal: gone.signal }).catch(() => null);
    const received = await a.received(4 + n);
    gone.abort();
    await Promise.all([asked, received.closed]);
  }
  hangs = false;
  assert.deepEqual(await askTimes(gateway, 2), ["a", "a"]);
  assert.equal(b.requests.length, 0);
});

test("when every member is ejected one is still asked, then the fallbacks", async () => {
  await using bad = await startUpstream((_, res) => sendJson(res, DOWN, 500));
  await using spare = await startUpstream(answering("spare"));
  const { overrides } = controls();
  const models = { a: at(bad), b: at(bad), spare: at(spare) };
  await using gateway = await startGateway({ ...models, m: over(["a", "b"], {}, { fallbacks: ["spare"] }) }, overrides);
  assert.deepEqual(await askTimes(gateway, 4), Array(4).fill("spare"));
  const before = bad.requests.length;
  assert.equal((await ask(gateway)).by, "spare");
  assert.equal(bad.requests.length, before + 3, "one member, with the retries of a last resort");
  await using alone = await startGateway({ ...models, m: over(["a", "b"]) }, overrides);
  const told = await ask(alone);
  assert.deepEqual([told.status, JSON.parse(told.text)], [500, DOWN]);
});

test("by latency the member that begins to answer soonest is asked, and a slow one is measured again later", async () => {
  const { held, overrides } = controls();
  const taking =
    (id: string, ms: number): Answer =>
    (request, res, number) => {
      held.nowMs += ms;
      return answering(id)(request, res, number);
    };
  await using slow = await startUpstream(taking("slow", 400));
  await using fast = await startUpstream(taking("fast", 100));
  await using gateway = await startGateway(
    { m: over(["slow", "fast"], { strategy: "latency" }), slow: at(slow), fast: at(fast) },
    overrides,
  );
  for (const stream of [false, true]) {
    const served = await askTimes(gateway, 6, { body: { stream } });
    assert.deepEqual(served, ["slow", "fast", "fast", "fast", "fast", "fast"]);
  }
  held.nowMs += 29_000;
  await ask(gateway);
  held.nowMs += 40_000;
  const later = await askTimes(gateway, 12);
  assert.ok(later.includes("slow") && later.at(-1) === "fast", later.join(" "));
});

test("errors that come fast do not make a member look fast", async () => {
  const { held, overrides } = controls();
  await using failing = await startUpstream((_, res) => sendJson(res, { error: { message: "no" } }, 400));
  await using works = await startUpstream((request, res, number) => {
    held.nowMs += 100;
    return answering("works")(request, res, number);
  });
  await using gateway = await startGateway(
    { m: over(["works", "failing"], { strategy: "latency" }), works: at(works), failing: at(failing) },
    overrides,
  );
  const statuses: number[] = [];
  for (let n = 0; n < 5; n += 1) statuses.push((await ask(gateway)).status);
  assert.deepEqual(statuses, [200, 400, 200, 200, 200]);
});

test("a session stays at one member while that is well", async () => {
  const downs = new Set<string>();
  const one =
    (id: string): Answer =>
    (request, res, number) =>
      downs.has(id) ? sendJson(res, DOWN, 503) : answering(id)(request, res, number);
  await using a = await startUpstream(one("a"));
  await using b = await startUpstream(one("b"));
  await using gateway = await startGateway({ m: over(["a", "b"]), a: at(a), b: at(b) });
  const seen = new Set<string | null>();
  const session = (n: number) => ({ headers: { "x-service-session-id": `run-${n}` } });
  for (let n = 0; n < 32; n += 1) {
    const served = new Set(await askTimes(gateway, 2, session(n)));
    assert.equal(served.size, 1);
    for (const by of served) seen.add(by);
  }
  assert.equal(seen.size, 2, "sessions are divided");
  const home = (await ask(gateway, session(0))).by ?? "";
  downs.add(home);
  assert.notEqual((await ask(gateway, session(0))).by, home);
});

test("what a provider stores stays at one provider", async () => {
  await using a = await startUpstream(answering("a"));
  await using b = await startUpstream(answering("b"));
  const { held, overrides } = controls();
  await using gateway = await startGateway({ m: over(["a", "b"]), a: at(a), b: at(b) }, overrides);
  held.chance = 0.99;
  const by = async (asked: Asked) => (await ask(gateway, asked)).by;
  assert.equal(await by({}), "b");
  assert.equal(await by({ body: { store: true } }), "a");
  assert.equal(await by({ path: "/v1/responses", body: { input: "x" } }), "a");
  assert.equal(await by({ path: "/v1/responses", body: { input: "x", store: false } }), "b");
  assert.equal(await by({ path: "/v1/files" }), "a");
});

test("the caps of the asked model hold whichever member serves, and count a request once", async () => {
  await using bad = await startUpstream((_, res) => sendJson(res, DOWN, 503));
  await using good = await startUpstream(answering("good"));
  const cap = (name: string, limits: object) => ({
    ...{ name, type: "maxToken" },
    maxTokens: { granularity: "month", ...limits },
  });
  const { overrides } = controls();
  await using gateway = await startGateway(
    {
      m: over(["bad", "good"], {}, { policies: [cap("mine", { requests: 3, repeats: 3, total: 100 })] }),
      bad: at(bad, { policies: [cap("mine", { requests: 3, repeats: 3, total: 100 })] }),
      good: at(good),
    },
    overrides,
  );
  const statuses: number[] = [];
  for (let n = 0; n < 4; n += 1) statuses.push((await ask(gateway)).status);
  assert.deepEqual(statuses, [200, 200, 200, 429]);
  assert.equal(good.requests.length, 3);

  const total = { policies: [cap("few", { total: 80 })] };
  await using metered = await startGateway({ m: over(["good"], {}, total), good: at(good) }, overrides);
  const asked: number[] = [];
  for (let n = 0; n < 9; n += 1) asked.push((await ask(metered)).status);
  assert.ok(asked.includes(200) && asked.at(-1) === 429, `the tokens of members are counted: ${asked}`);
});

test("a member whose own cap is used up is passed over; an unusable member is, too", async () => {
  await using a = await startUpstream(answering("a"));
  await using b = await startUpstream(answering("b"));
  const policies = [{ name: "few", type: "maxToken", maxTokens: { granularity: "month", requests: 1 } }];
  const { overrides } = controls();
  await using gateway = await startGateway(
    {
      m: over(["off", "gone"]),
      off: at(a, { enabled: false }),
    },
    overrides,
  );
  const refused = await ask(gateway);
  assert.equal(refused.status, 400);
  assert.match(refused.text, /PROVIDER_NOT_CONFIGURED.*No model of spec\.balance of m/s);
  await using other = await startGateway(
    {
      m: over(["off", "gone", "homeless", "a", "b"]),
      ...{ off: at(a, { enabled: false }), homeless: { type: "vllm" }, a: at(a, { policies }), b: at(b) },
    },
    overrides,
  );
  assert.deepEqual(await askTimes(other, 3), ["a", "b", "b"]);
});

test("kept answers are those of the asked model, not of its members", async () => {
  await using a = await startUpstream((_, res, number) => sendJson(res, { id: `n-${number}`, choices: [], usage }));
  const cache = { ttlSeconds: 60, scope: "model" } as const;
  const { overrides } = controls();
  await using gateway = await startGateway({ m: over(["a"], {}, { cache }), a: at(a, { cache }) }, overrides);
  const direct = await fetch(`${gateway.url("a")}${CHAT}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ max_tokens: 10, messages: [{ role: "user", content: "hello" }] }),
  });
  assert.match(await direct.text(), /n-1/);
  assert.match((await ask(gateway)).text, /n-2/);
  assert.match((await ask(gateway)).text, /n-2/);
  const [, , hit] = await gateway.recorded(3);
  assert.equal(hit?.fromCache, true);
});
