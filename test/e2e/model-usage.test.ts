/** What the models of a workspace were used for, by model and by key, from requests that really went through. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { runBerth } from "../berth-process.ts";
import { makeServiceAccount, makeUser } from "../identities.ts";
import { sendJson, startUpstream, type UpstreamServer } from "../models/upstream-server.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";
import { eventually } from "../sandboxd-harness.ts";

let platform: TestPlatform;
let provider: UpstreamServer;
let otherKey: { id: string; apiKey: string };

const usage = (query = "", options: { key?: string; workspace?: string } = {}) =>
  platform.call("GET", `/usage/models${query}`, { workspace: "main", ...options });

async function ask(model: string, text: string, key = platform.apiKey, workspace = "main"): Promise<void> {
  const answer = await fetch(`${platform.url}/${workspace}/models/${model}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ messages: [{ role: "user", content: text }] }),
  });
  assert.equal(answer.status, 200);
  lastId[model] = answer.headers.get("x-request-id") ?? "";
  const { usage: told } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } };
  upstream.input += told.prompt_tokens;
  upstream.output += told.completion_tokens;
}

/** The id of the last answer of each model. */
const lastId: Record<string, string> = {};
/** What the answers themselves said. */
const upstream = { input: 0, output: 0 };

before(async () => {
  platform = await startTestPlatform();
  const answered = { choices: [], usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 } };
  provider = await startUpstream((_request, res) => sendJson(res, answered));
  const config = { baseUrl: provider.baseUrl };
  await platform.call("POST", "/integrations/connections", {
    body: { metadata: { name: "local" }, spec: { integration: "openai-compatible", config } },
  });
  const make = (name: string, spec: object, workspace = "main") =>
    platform.call("POST", "/models", { body: { metadata: { name }, spec }, workspace });
  const prices = { input: "1000", output: "2000" };
  await make("priced", { runtime: { type: "mock", model: "echo" }, prices });
  await make("unknown", { runtime: { type: "vllm", model: "of-no-known-price" }, integrationConnections: ["local"] });
  const { body } = await platform.call("POST", "/api_keys", { body: { name: "second" } });
  otherKey = body;
  await ask("priced", "one two three");
  await ask("priced", "one two three four", otherKey.apiKey);
  await ask("unknown", "one");
  await eventually(async () => (await usage()).body.summary.requests === 3, "three requests in the ledger");
});
after(async () => {
  await platform.stop();
  await provider[Symbol.asyncDispose]();
});

test("by model, the costliest first, and in all what the providers said", async () => {
  const { status, body } = await usage();
  assert.equal(status, 200);
  assert.deepEqual(
    body.data.map((entry) => [entry.model, entry.requests, entry.unpricedRequests]),
    [
      ["priced", 2, 0],
      ["unknown", 1, 1],
    ],
  );
  assert.equal(body.summary.inputTokens, upstream.input);
  assert.equal(body.summary.outputTokens, upstream.output);
  const { 0: known, 1: unknown } = body.data;
  const { inputTokens, outputTokens, cost } = known;
  assert.equal(cost, (inputTokens * 1000 + outputTokens * 2000) / 1e6);
  assert.equal(body.summary.cost, cost);
  assert.deepEqual([unknown.cost, unknown.inputTokens > 0], [0, true]);
  assert.deepEqual(body.meta, { hasMore: false, nextCursor: "" });
});

test("the command line shows the requests as a table, and how to get more", async () => {
  const env = { BERTH_URL: platform.url, BERTH_API_KEY: platform.apiKey, BERTH_WORKSPACE: "main" };
  const { code, stdout, stderr } = await runBerth(["model", "requests", "priced", "--limit", "1"], { env });
  assert.equal(code, 0, stderr);
  const [titles = "", row = "", ...more] = stripVTControlCharacters(stdout).trimEnd().split("\n");
  assert.deepEqual(titles.split(/ +/).filter(Boolean), "TIME ID KEY INPUT CACHED OUTPUT COST NOTE".split(" "));
  assert.deepEqual([row.split(/ +/).slice(1, 3), more], [[lastId.priced, "second"], []]);
  assert.match(stderr, /more: add --query cursor=\S/);
  const larger = await platform.call("GET", "/models/priced/requests?limit=201", { workspace: "main" });
  assert.equal(larger.status, 200);
});

test("request by request, the newest first, page by page, and of this model only", async () => {
  const requests = (query = "", options: { key?: string; workspace?: string } = {}) =>
    platform.call("GET", `/models/priced/requests${query}`, { workspace: "main", ...options });
  const first = await requests("?limit=1");
  assert.equal(first.status, 200, JSON.stringify(first.body));
  const second = await requests(`?limit=1&cursor=${encodeURIComponent(first.body.meta.nextCursor)}`);
  const [newest, oldest] = [first.body.data[0], second.body.data[0]];
  assert.deepEqual(
    [newest.key.type, newest.key.name, newest.priced, newest.cached],
    ["api_key", "second", true, false],
  );
  assert.equal(newest.id, lastId.priced);
  assert.ok(String(newest.time) > String(oldest.time));
  const { body: whole } = await usage("?model=priced");
  for (const member of ["inputTokens", "outputTokens", "cost"] as const)
    assert.equal((newest[member] + oldest[member]).toFixed(9), whole.summary[member].toFixed(9), member);
  assert.deepEqual(second.body.meta, { hasMore: false, nextCursor: "" });
  assert.equal((await platform.call("GET", "/models/nobody/requests", { workspace: "main" })).status, 404);
  const stranger = await makeUser(platform.app.store, null, "member");
  assert.equal((await requests("", { key: stranger.key })).status, 403);
});

test("by key, with its name as long as there is one", async () => {
  const { body } = await usage("?groupBy=key");
  const second = body.data.find(({ key }) => key.id === otherKey.id);
  assert.deepEqual(second.key, { type: "api_key", id: otherKey.id, name: "second" });
  assert.equal(second.requests, 1);
  assert.equal(body.data.length, 2);
  await platform.call("DELETE", `/api_keys/${otherKey.id}`);
  const later = (await usage("?groupBy=key")).body.data.find(({ key }) => key.id === otherKey.id);
  assert.deepEqual(later.key, { type: "api_key", id: otherKey.id });
});

test("by several, page by page, with a summary of all", async () => {
  const whole = (await usage("?groupBy=key,workspace,model")).body;
  assert.equal(whole.data.length, 3);
  assert.ok(whole.data.every(({ workspace }: { workspace: string }) => workspace === "main"));
  const first = (await usage("?groupBy=model,key,workspace&limit=2")).body;
  assert.deepEqual(first.data, whole.data.slice(0, 2));
  assert.deepEqual(first.summary, whole.summary);
  const rest = (await usage(`?groupBy=workspace,key,model&limit=2&cursor=${first.meta.nextCursor}`)).body;
  assert.deepEqual(rest.data, whole.data.slice(2));
  assert.equal(rest.meta.hasMore, false);
  assert.equal((await usage(`?groupBy=model&cursor=${first.meta.nextCursor}`)).status, 400);
});

test("prices of a model are checked when it is written", async () => {
  for (const prices of [
    { input: 0.15, output: "0.6" },
    { input: "0.15" },
    { input: "-1", output: "1" },
    { cost: "1" },
  ]) {
    const { status, body } = await platform.call("POST", "/models", {
      body: { metadata: { name: "cheap" }, spec: { runtime: { type: "mock" }, prices } },
      workspace: "main",
    });
    assert.equal(status, 400);
    assert.match(body.message, /spec\.prices/);
  }
});

test("of one model, and of a window", async () => {
  assert.equal((await usage("?model=unknown")).body.summary.requests, 1);
  assert.equal((await usage("?model=nobody")).body.summary.requests, 0);
  const before = "startTime=2020-01-01T00:00:00Z&endTime=2021-01-01T00:00:00Z";
  const { body } = await usage(`?${before}`);
  assert.deepEqual([body.startTime, body.endTime, body.data], ["2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z", []]);
});

test("other workspaces are not in it, and who has no part in this one is refused", async () => {
  await platform.call("POST", "/workspaces", { body: { name: "elsewhere" } });
  assert.deepEqual((await usage("", { workspace: "elsewhere" })).body.summary.requests, 0);
  const { store } = platform.app;
  const { id } = (await platform.call("GET", "/accounts")).body[0];
  const stranger = await makeUser(store, id, "member");
  assert.ok([403, 404].includes((await usage("", { key: stranger.key, workspace: "main" })).status));
  const machine = await makeServiceAccount(store, "elsewhere", "admin");
  assert.ok([403, 404].includes((await usage("", { key: machine.key, workspace: "main" })).status));
});

for (const query of ["groupBy=price", "groupBy=model,model", "groupBy=,", "limit=0", "startTime=yesterday", "cursor=x"])
  test(`${query} is refused`, async () => assert.equal((await usage(`?${query}`)).status, 400));

test("the bill is not disturbed: tokens stand beside the twelve, and cost nothing unless the operator says so", async () => {
  const { id } = (await platform.call("GET", "/accounts")).body[0];
  const day = Date.now() - 3_600_000 * 24;
  const window = `startTime=${new Date(day).toISOString()}&endTime=${new Date(day + 2 * 86_400_000).toISOString()}`;
  const { body } = await platform.call(
    "GET",
    `/accounts/${id}/metrics?${window}&resourceType=model&groupBy=billing_dimension`,
  );
  const costs = Object.fromEntries(
    body.data.map((entry: { billingDimension: string; summary: { usage: number; cost: number } }) => [
      entry.billingDimension,
      entry.summary,
    ]),
  );
  assert.equal(costs.model_input_tokens_count?.usage, upstream.input);
  assert.equal(costs.model_provider_cost_usd?.usage, (await usage()).body.summary.cost);
  assert.equal(body.summary.totalCost, 0);
});

test("what a provider did not report is estimated, and said to be", async () => {
  const server = createServer((req, res) => {
    req.resume().on("end", () => {
      res.setHeader("content-type", "application/json");
      res.end('{"choices":[{"index":0,"message":{"role":"assistant","content":"one two three"}}]}');
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = { metadata: { name: "silent" }, spec: { integration: "openai-compatible", config: { baseUrl } } };
  await platform.call("POST", "/integrations/connections", { body: connection });
  const spec = { runtime: { type: "openai-compatible" }, integrationConnections: ["silent"] };
  await platform.call("POST", "/models", { body: { metadata: { name: "silent" }, spec } });
  const answer = await fetch(`${platform.url}/main/models/silent`, {
    method: "POST",
    headers: { authorization: `Bearer ${platform.apiKey}` },
    body: '{"messages":[{"role":"user","content":"how many tokens are these?"}]}',
  });
  await answer.text();
  const counted = () => usage("?model=silent").then(({ body }) => body.summary);
  await eventually(async () => (await counted()).requests === 1, "the request in the ledger");
  const { estimatedRequests, inputTokens, outputTokens } = await counted();
  assert.deepEqual([estimatedRequests, inputTokens > 0, outputTokens > 0], [1, true, true]);
  assert.equal((await usage("?model=priced")).body.summary.estimatedRequests, 0);
  server.close();
});

test("what a token policy leaves, for all together and for each key", async () => {
  const policy = (name: string, maxTokens: object) =>
    platform.call("POST", "/policies", {
      workspace: "main",
      body: { metadata: { name }, spec: { type: "maxToken", maxTokens } },
    });
  await policy("together", { granularity: "month", total: 1000, requests: 10 });
  await policy("each", { granularity: "month", output: 500, per: "key" });
  const spec = { runtime: { type: "mock", model: "echo" }, policies: ["together", "each"] };
  await platform.call("POST", "/models", { workspace: "main", body: { metadata: { name: "capped" }, spec } });
  const { body: third } = await platform.call("POST", "/api_keys", { body: { name: "third" } });
  const before = { ...upstream };
  await ask("capped", "one two three");
  const own = { input: upstream.input - before.input, output: upstream.output - before.output };
  await ask("capped", "four", third.apiKey);
  const all = { input: upstream.input - before.input, output: upstream.output - before.output };
  const { status, body } = await platform.call("GET", "/models/capped/budget", { workspace: "main" });
  assert.equal(status, 200, JSON.stringify(body));
  const used = all.input + all.output;
  assert.deepEqual(
    (body.policies as { policy: string; per: string; limits: object[] }[]).map((one) => [
      ...[one.policy, one.per, one.limits],
    ]),
    [
      [
        "together",
        "policy",
        [
          { name: "total", limit: 1000, used, left: 1000 - used },
          { name: "requests", limit: 10, used: 2, left: 8 },
        ],
      ],
      ["each", "key", [{ name: "output", limit: 500, used: own.output, left: 500 - own.output }]],
    ],
  );
});
