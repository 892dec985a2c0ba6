import assert from "node:assert/strict";
import { type IncomingHttpHeaders, request } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

let platform: TestPlatform;
before(async () => {
  platform = await startTestPlatform({ config: { domain: "berth.test", continent: "eu", country: "de" } });
  await platform.call("POST", "/models", {
    body: { metadata: { name: "echo" }, spec: { runtime: { type: "mock", model: "mock-echo" } } },
  });
});
after(() => platform.stop());

const client = (apiKey = platform.apiKey) =>
  new OpenAI({ apiKey, baseURL: `${platform.url}/main/models/echo/v1`, maxRetries: 0 });

test("an OpenAI client talks to a model of the workspace", async () => {
  const answer = await client().chat.completions.create({
    model: "echo",
    messages: [{ role: "user", content: "hello there" }],
  });
  assert.match(answer.choices[0]?.message.content ?? "", /hello there/);
  assert.ok((answer.usage?.total_tokens ?? 0) > 0);
});

test("every answer about a model has one request id of the platform's own: tokens are billed by it", async () => {
  const ask = (path: string, headers: Record<string, string>, body?: object): Promise<Response> =>
    fetch(`${platform.url}/main/models/${path}`, {
      method: body ? "POST" : "GET",
      headers: { authorization: `Bearer ${platform.apiKey}`, "content-type": "application/json", ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  const chat = { model: "echo", messages: [{ role: "user", content: "hello" }] };
  const cases: [path: string, body: object | undefined, status: number][] = [
    ["echo/v1/chat/completions", chat, 200],
    ["echo/v1/chat/completions", { ...chat, stream: true }, 200],
    ["echo/v1/models", undefined, 200],
    ["nobody/v1/chat/completions", chat, 404],
  ];
  const seen = new Set<string | null>();
  for (const [path, body, status] of cases) {
    const answer = await ask(path, { "x-request-id": "mine-7" }, body);
    await answer.text();
    assert.equal(answer.status, status, path);
    seen.add(answer.headers.get("x-request-id"));
  }
  assert.equal(seen.size, cases.length);
  for (const id of seen) assert.match(id ?? "", /^[0-9a-f]{8}-[0-9a-f-]{27}$/);
});

test("streams arrive event by event", async () => {
  const stream = await client().chat.completions.create({
    model: "echo",
    stream: true,
    messages: [{ role: "user", content: "one two three" }],
  });
  let text = "";
  let events = 0;
  for await (const event of stream) {
    events += 1;
    text += event.choices[0]?.delta.content ?? "";
  }
  assert.match(text, /one two three/);
  assert.ok(events > 1);
});

test("without credentials nobody is served", async () => {
  const answer = await fetch(`${platform.url}/main/models/echo/chat/completions`, { method: "POST", body: "{}" });
  assert.equal(answer.status, 401);
  const { error } = (await answer.json()) as { error: { code: string; origin: string } };
  assert.deepEqual([error.code, error.origin], ["AUTHENTICATION_REQUIRED", "platform"]);
  await assert.rejects(client("garbage").chat.completions.create({ model: "echo", messages: [] }), { status: 401 });
});

test("who is refused is told where credentials are given out, at a path as at a host name", async () => {
  const { port } = new URL(platform.url);
  const host = `mdl-echo-main.local.berth.test:${port}`;
  const known = "/.well-known/oauth-protected-resource";
  const addresses = [
    { address: `${platform.url}/main/models/echo/v1/models`, at: `${platform.url}${known}/main/models/echo/v1/models` },
    { address: `http://${host}/v1/models`, at: `http://${host}${known}/v1/models` },
  ];
  for (const { address, at } of addresses) {
    const none = await get(address);
    assert.deepEqual([none.status, none.headers["www-authenticate"]], [401, `Bearer resource_metadata="${at}"`]);
    const wrong = await get(address, { authorization: "Bearer garbage" });
    assert.equal(wrong.headers["www-authenticate"], `Bearer resource_metadata="${at}", error="invalid_token"`);
    const { resource, authorization_servers, scopes_supported } = JSON.parse((await get(at)).text);
    assert.deepEqual([resource, authorization_servers], [address, [platform.url]]);
    assert.deepEqual(scopes_supported, ["models:get"]);
  }
});

test("a model that is not there is not found, one that is off says so", async () => {
  const headers = { authorization: `Bearer ${platform.apiKey}`, "content-type": "application/json" };
  const post = (name: string) =>
    fetch(`${platform.url}/main/models/${name}/chat/completions`, { method: "POST", headers, body: '{"messages":[]}' });
  assert.equal((await post("nobody")).status, 404);
  await platform.call("POST", "/models", {
    body: { metadata: { name: "off" }, spec: { enabled: false, runtime: { type: "mock" } } },
  });
  const { error } = (await (await post("off")).json()) as { error: { code: string } };
  assert.equal(error.code, "WORKLOAD_DISABLED");
});

test("a location policy holds where the operator has told where the server stands", async () => {
  const places = {
    here: ["continent", "eu"],
    near: ["country", "de"],
    away: ["continent", "na"],
    abroad: ["country", "us"],
  };
  const statuses: Record<string, number> = {};
  for (const [name, [type, place]] of Object.entries(places)) {
    const policy = { metadata: { name }, spec: { type: "location", locations: [{ type, name: place }] } };
    assert.equal((await platform.call("POST", "/policies", { body: policy })).status, 200);
    const spec = { runtime: { type: "mock" }, policies: [name] };
    await platform.call("POST", "/models", { body: { metadata: { name: `model-${name}` }, spec } });
    const answer = await fetch(`${platform.url}/main/models/model-${name}`, {
      method: "POST",
      headers: { authorization: `Bearer ${platform.apiKey}` },
      body: '{"messages":[{"role":"user","content":"hi"}]}',
    });
    statuses[name] = answer.status;
  }
  assert.deepEqual(statuses, { here: 200, near: 200, away: 403, abroad: 403 });
  const { body } = await platform.call("GET", "/locations");
  assert.deepEqual([body[0].continent, body[0].country], ["eu", "de"]);
  const { body: configuration } = await platform.call("GET", "/configuration");
  assert.deepEqual(configuration.continents, [{ name: "eu", displayName: "eu" }]);
});

test("an upgrade is refused at once: there is nobody to be joined with", async () => {
  for (const path of ["/main/models/echo/v1/realtime", "/main/jobs/none"]) {
    const headers = { authorization: `Bearer ${platform.apiKey}`, connection: "Upgrade", upgrade: "websocket" };
    const { status, text: body } = await get(`${platform.url}${path}`, headers);
    assert.deepEqual([status, JSON.parse(body).error.code], [400, "BAD_REQUEST"], path);
  }
});

/** Names of hosts lead here without DNS. */
function get(
  address: string,
  headers: Record<string, string> = {},
): Promise<{ status: number | undefined; headers: IncomingHttpHeaders; text: string }> {
  const { host, pathname } = new URL(address);
  return new Promise((resolve, reject) => {
    request(
      { host: "127.0.0.1", port: new URL(platform.url).port, path: pathname, headers: { host, ...headers } },
      (res) => {
        text(res).then((body) => resolve({ status: res.statusCode, headers: res.headers, text: body }), reject);
      },
    )
      .on("error", reject)
      .end();
  });
}
