import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PROVIDERS } from "../../src/gateway/providers/catalogue.ts";
import { findIntegration, INTEGRATIONS } from "../../src/kinds/integration/declarations.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

let platform: TestPlatform;
before(async () => {
  platform = await startTestPlatform();
});
after(() => platform.stop());

test("every integration describes itself", async () => {
  for (const { name, aliases = [] } of INTEGRATIONS)
    for (const word of [name, ...aliases]) {
      const { status, body } = await platform.call("GET", `/integrations/${word}`);
      assert.equal(status, 200);
      assert.equal(body.name, name);
    }
  assert.equal((await platform.call("GET", "/integrations/unheard-of")).status, 404);
});

test("one that gives access by refresh token says where to exchange it", async () => {
  const { body } = await platform.call("GET", "/integrations/google-drive");
  assert.deepEqual(body.secrets, ["CLIENT_ID", "CLIENT_SECRET", "REFRESH_TOKEN"]);
  assert.equal(body.additionalInfos.tokenUrl, "https://oauth2.googleapis.com/token");
});

test("what is said of a model provider is what the gateway does", () => {
  for (const provider of PROVIDERS.filter(({ name }) => name !== "mock")) {
    const declared = findIntegration(provider.name);
    assert.ok(declared, provider.name);
    for (const secret of declared.secrets)
      assert.ok(provider.secretNames.includes(secret), `${provider.name} ${secret}`);
    assert.ok(Object.keys(declared.headers ?? {}).includes(provider.auth.header), provider.name);
    if (provider.baseUrl) assert.ok(declared.baseUrl?.startsWith(provider.baseUrl), provider.name);
  }
});
