import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { INTEGRATIONS } from "../../src/kinds/integration/declarations.ts";
import { PROVIDERS } from "../../src/models/providers/catalogue.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

let platform: TestPlatform;
before(async () => {
  platform = await startTestPlatform();
});
after(() => platform.stop());

test("every integration describes itself", async () => {
  for (const { name } of [...INTEGRATIONS, ...PROVIDERS]) {
    const { status, body } = await platform.call("GET", `/integrations/${name}`);
    assert.equal(status, 200, name);
    assert.equal(body.name, name);
    assert.ok(body.additionalInfos.title);
  }
  assert.equal((await platform.call("GET", "/integrations/unheard-of")).status, 404);
});

test("one that gives access by refresh token says where to exchange it", async () => {
  const { body } = await platform.call("GET", "/integrations/google-drive");
  assert.deepEqual(body.secrets, ["CLIENT_ID", "CLIENT_SECRET", "REFRESH_TOKEN"]);
  assert.equal(body.additionalInfos.tokenUrl, "https://oauth2.googleapis.com/token");
});

test("a connection tells what its provider offers", async () => {
  const provider = createServer((request, response) => {
    const known = request.url === "/v1/models" && request.headers.authorization === "Bearer right";
    response.writeHead(known ? 200 : 401, { "content-type": "application/json" });
    response.end(known ? '{"data":[{"id":"small"},{"id":"large","owned_by":"them"}]}' : "{}");
  }).listen(0, "127.0.0.1");
  await once(provider, "listening");
  const baseUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const connect = (name: string, integration: string, apiKey: string) =>
    platform.call("POST", "/integrations/connections", {
      body: { metadata: { name }, spec: { integration, config: { baseUrl }, secret: { apiKey } } },
    });
  await connect("ours", "openai-compatible", "right");
  const list = await platform.call("GET", "/integrations/connections/ours/models");
  assert.deepEqual(list.body, [{ id: "small" }, { id: "large", ownedBy: "them" }]);
  assert.equal((await platform.call("GET", "/integrations/connections/ours/models/large")).body.id, "large");
  assert.equal((await platform.call("GET", "/integrations/connections/ours/models/none")).status, 404);
  const endpoints = await platform.call("GET", "/integrations/connections/ours/endpointConfigurations");
  assert.ok(endpoints.body["/v1/chat/completions"]);
  await connect("wrong", "openai-compatible", "stolen");
  const refused = await platform.call("GET", "/integrations/connections/wrong/models");
  assert.ok(refused.status >= 400 && refused.status !== 401, "the provider's refusal is not the caller's");
  assert.ok(!JSON.stringify(refused.body).includes("stolen"));
  await connect("files", "google-drive", "x");
  assert.equal((await platform.call("GET", "/integrations/connections/files/models")).status, 400);
  provider.close();
});
