import assert from "node:assert/strict";
import { test } from "node:test";
import {
  describeIntegration,
  endpointConfigurations,
  getProviderModel,
  listProviderModels,
} from "../../src/models/connections.ts";
import { PROVIDERS } from "../../src/models/providers/catalogue.ts";
import { Upstreams } from "../../src/models/upstreams.ts";
import { connectionOf } from "./gateway-harness.ts";
import { sendJson, startUpstream } from "./upstream-server.ts";

/** What each provider's list looks like, where it is, and what is read from it. */
const LISTS: [type: string, path: string, auth: [string, string], body: unknown, ids: string[]][] = [
  [
    "openai",
    "/v1/models",
    ["authorization", "Bearer stored-key"],
    { object: "list", data: [{ id: "gpt-5", object: "model", created: 1, owned_by: "openai" }, { broken: true }] },
    ["gpt-5"],
  ],
  [
    "anthropic",
    "/v1/models?limit=1000",
    ["x-api-key", "stored-key"],
    { data: [{ type: "model", id: "claude-x", display_name: "Claude X" }], has_more: false },
    ["claude-x"],
  ],
  [
    "gemini",
    "/v1beta/models?pageSize=1000",
    ["x-goog-api-key", "stored-key"],
    { models: [{ name: "models/gemini-x", displayName: "Gemini X" }] },
    ["gemini-x"],
  ],
  [
    "cohere",
    "/v1/models?page_size=1000",
    ["authorization", "Bearer stored-key"],
    { models: [{ name: "command-a" }] },
    ["command-a"],
  ],
  ["groq", "/openai/v1/models", ["authorization", "Bearer stored-key"], { data: [{ id: "llama" }] }, ["llama"]],
  ["azure-openai", "/openai/v1/models", ["api-key", "stored-key"], { data: [{ id: "gpt-5" }] }, ["gpt-5"]],
];

function pools(privateAddresses = true): Upstreams & AsyncDisposable {
  const upstreams = new Upstreams({ privateAddresses, connectTimeoutMs: 30_000, tickMs: 50 });
  return Object.assign(upstreams, { [Symbol.asyncDispose]: () => upstreams.stop() });
}

for (const [type, path, [header, value], body, ids] of LISTS) {
  test(`${type} lists its models`, async () => {
    await using upstream = await startUpstream((_request, res) => sendJson(res, body));
    await using upstreams = pools();
    const connection = connectionOf({ type, baseUrl: upstream.baseUrl });
    const models = await listProviderModels(connection, upstreams);
    assert.deepEqual(
      models.map((model) => model.id),
      ids,
    );
    assert.deepEqual([upstream.requests[0]?.url, upstream.requests[0]?.headers[header]], [path, value]);
    assert.equal((await getProviderModel(connection, ids[0] ?? "", upstreams))?.id, ids[0]);
    assert.equal(await getProviderModel(connection, "absent", upstreams), null);
  });
}

test("what can go wrong has a code of the management API", async () => {
  await using upstream = await startUpstream((request, res) => {
    if (request.url.startsWith("/html")) sendJson(res, "<html>");
    else sendJson(res, { error: "no" }, 403);
  });
  await using open = pools();
  await using closed = pools(false);
  const at = (path: string) => connectionOf({ type: "openai", baseUrl: upstream.baseUrl + path });
  const coded = (code: string) => (error: unknown) => {
    assert.equal((error as { code: string }).code, code);
    assert.ok(!String((error as Error).message).includes("stored-key"));
    return true;
  };
  await assert.rejects(listProviderModels(at(""), open), coded("bad_gateway"));
  await assert.rejects(listProviderModels(at("/html"), open), coded("bad_gateway"));
  await assert.rejects(listProviderModels(at(""), closed), coded("bad_request"));
  await assert.rejects(listProviderModels(connectionOf({ type: "openai", secret: {} }), open), coded("bad_request"));
  await assert.rejects(listProviderModels(connectionOf({ type: "github" }), open), coded("not_found"));
});

test("every provider describes its endpoints, the default one first", () => {
  for (const provider of PROVIDERS) {
    const { endpoints } = describeIntegration(provider.name);
    assert.equal(Object.keys(endpoints)[0], provider.defaultPath, provider.name);
  }
  assert.deepEqual(Object.keys(endpointConfigurations(connectionOf({ type: "gemini" }))), [
    "/v1beta/models/{model}:generateContent",
    "/v1/embeddings",
    "/v1/chat/completions",
  ]);
});
