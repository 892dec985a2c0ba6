import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

let platform: TestPlatform;
before(async () => {
  platform = await startTestPlatform();
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
