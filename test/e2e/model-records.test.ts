/** Models, the policies that limit them and the connections that hold their keys. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MASK } from "../../src/contract/secret-fields.ts";
import { verifyWebhook } from "../../src/lib/network/webhook-signature.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { onEachDatabase } from "../each-platform.ts";
import { makeUser } from "../identities.ts";
import { sendJson, startUpstream } from "../models/upstream-server.ts";

await onEachDatabase("models, policies and connections", ({ call, make, store, url }) => {
  test("a connection never shows its secrets, whoever asks", async () => {
    const secret = { CLIENT_ID: "id", CLIENT_SECRET: "s3cret", REFRESH_TOKEN: "r3fresh" };
    const made = await make("/integrations/connections", "drive-tenant", {
      integration: "google-drive",
      secret,
      config: { tokenUrl: "https://example.test/token" },
    });
    assert.deepEqual(made.spec.secret, { CLIENT_ID: MASK, CLIENT_SECRET: MASK, REFRESH_TOKEN: MASK });
    assert.equal(made.status, "DEPLOYED");
    const read = await call("GET", "/integrations/connections/drive-tenant?show_secrets=true");
    assert.deepEqual(read.body.spec, made.spec);
    const listed = await call("GET", "/integrations/connections");
    assert.ok(Array.isArray(listed.body), "the list is bare in every version");
    assert.doesNotMatch(JSON.stringify(listed.body), /s3cret/);

    const changed = { ...made.spec, secret: { CLIENT_ID: "id2", CLIENT_SECRET: MASK } };
    await call("PUT", "/integrations/connections/drive-tenant", { body: { ...made, spec: changed } });
    const scope = { workspace: "main", kind: "integrationconnection", parent: "" };
    const stored = await store().resources.get(scope, "drive-tenant");
    assert.ok(stored);
    assert.deepEqual(store().resources.secretsOf(stored), {
      "/spec/secret/CLIENT_ID": "id2",
      "/spec/secret/CLIENT_SECRET": "s3cret",
    });
  });

  test("an address that is none is refused when the connection is written", async () => {
    const made = (config: object) =>
      call("POST", "/integrations/connections", {
        body: { metadata: { name: "addressed" }, spec: { integration: "openai", config } },
      });
    for (const address of [
      "notaurl",
      "ftp://example.com",
      "http://user:pw@example.com",
      "http://example.com/?x=1",
      "http://example.com/#a",
    ])
      for (const name of ["baseUrl", "tokenUrl"]) {
        const { status, body } = await made({ [name]: address });
        assert.equal(status, 400, address);
        assert.match(body.message, new RegExp(`^spec\\.config\\.${name}: must be an http or https address`));
      }
    assert.equal((await made({ baseUrl: "http://127.0.0.1:11434/v1/", tokenUrl: "" })).status, 200);
    await call("DELETE", "/integrations/connections/addressed");
  });

  test("members read connections and policies, admins change them", async () => {
    const accountId = (await store().people.listAccountsAcrossUsers())[0]?.id ?? "";
    const { key } = await makeUser(store(), accountId, "member", { main: "member" });
    const connection = { metadata: { name: "mine" }, spec: { integration: "openai" } };
    assert.equal((await call("POST", "/integrations/connections", { body: connection, key })).status, 403);
    assert.equal((await call("GET", "/integrations/connections", { key })).status, 200);
    const policy = { metadata: { name: "mine" }, spec: { type: "maxToken", maxTokens: { total: 1 } } };
    assert.equal((await call("POST", "/policies", { body: policy, key })).status, 403);
    assert.equal((await call("GET", "/policies", { key })).status, 200);
  });

  test("only an admin chooses the webhook of guardrails; its secret is masked, and signs what the webhook gets", async () => {
    const secret = "a secret of the webhook";
    await using hook = await startUpstream((request, res) => {
      const header = (name: string): string => String(request.headers[name]);
      const given = { signature: header("x-service-signature"), timestamp: header("x-service-timestamp") };
      const isOurs = verifyWebhook(secret, request.body, given, systemClock.now());
      sendJson(res, { action: "refuse", message: isOurs ? "signed" : "not signed" });
    });
    const accountId = (await store().people.listAccountsAcrossUsers())[0]?.id ?? "";
    const { key } = await makeUser(store(), accountId, "member", { main: "member" });
    const runtime = { type: "mock", model: "echo" };
    const guardrails = (url: string) => ({ webhook: { url, secret } });
    const made = await make("/models", "hooked", { runtime, guardrails: guardrails(hook.baseUrl) });
    assert.deepEqual(made.spec.guardrails, { webhook: { url: hook.baseUrl, secret: MASK } });
    const shown = await call("GET", "/models/hooked?show_secrets=true");
    assert.doesNotMatch(JSON.stringify(shown.body), /a secret of/);
    assert.equal((await call("PUT", "/models/hooked", { body: made })).status, 200);
    const asked = await fetch(`${url()}/main/models/hooked/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ messages: [{ role: "user", content: "hi" }] }),
    });
    assert.equal(asked.status, 403);
    assert.match(await asked.text(), /refused the request: signed/);

    const moved = { ...made, spec: { ...made.spec, guardrails: guardrails("https://elsewhere.example/") } };
    const refused = await call("PUT", "/models/hooked", { body: moved, key });
    assert.equal(refused.status, 403);
    assert.match(refused.body.message, /an admin has to choose it/);
    const same = { url: hook.baseUrl, secret: MASK };
    for (const changed of [
      undefined,
      {},
      { webhook: { ...same, secret: "another secret" } },
      { webhook: { ...same, onFailure: "allow" } },
      { webhook: { ...same, events: ["response"] } },
    ]) {
      const spec = { ...made.spec, guardrails: changed };
      const { status } = await call("PUT", "/models/hooked", { body: { ...made, spec }, key });
      assert.equal(status, 403, JSON.stringify(changed ?? null));
    }
    const own = { metadata: { name: "own" }, spec: { runtime, guardrails: guardrails(hook.baseUrl) } };
    assert.equal((await call("POST", "/models", { body: own, key })).status, 403);
    const kept = { ...made, spec: { ...made.spec, enabled: false } };
    assert.equal((await call("PUT", "/models/hooked", { body: kept, key })).status, 200);
    for (const address of ["ftp://x.example", "http://u:p@x.example", "nowhere"])
      assert.equal(
        (await call("POST", "/models", { body: { ...own, spec: { guardrails: guardrails(address) } } })).status,
        400,
      );
  });

  test("a model is in service at once, and what it names stays while it does", async () => {
    await make("/integrations/connections", "openai-key", { integration: "openai", secret: { apiKey: "k" } });
    await make("/policies", "cap", { type: "maxToken", maxTokens: { granularity: "hour", total: 1000 } });
    const made = await make("/models", "gpt", {
      runtime: { type: "openai", model: "gpt-4o-mini" },
      integrationConnections: ["openai-key"],
      policies: ["cap"],
    });
    assert.equal(made.status, "DEPLOYED");
    assert.equal(made.metadata.url, `${url()}/main/models/gpt`);
    assert.equal(made.spec.runtime.generation, undefined);
    assert.equal((await call("GET", "/models/gpt/revisions")).body.length, 1);

    for (const path of ["/integrations/connections/openai-key", "/policies/cap"]) {
      const refused = await call("DELETE", path);
      assert.equal(refused.status, 409);
      assert.match(refused.body.message, /in use by model 'gpt'/);
    }
    assert.equal((await call("GET", "/policies/cap")).body.usage.models, 1);
    assert.equal((await call("GET", "/policies?q=cap")).body.data[0].usage.models, 1);
    await call("PUT", "/models/gpt", { body: { ...made, spec: { ...made.spec, policies: [] } } });
    assert.equal((await call("DELETE", "/policies/cap")).status, 200);
    await call("DELETE", "/models/gpt");
    assert.equal((await call("DELETE", "/integrations/connections/openai-key")).status, 200);
  });

  test("fallbacks are other models that exist, each once", async () => {
    await make("/models", "spare", { runtime: { type: "mock" } });
    const made = await make("/models", "main-model", { fallbacks: ["spare"] });
    assert.deepEqual(made.spec.fallbacks, ["spare"]);
    assert.equal((await call("DELETE", "/models/spare")).status, 409);
    const wrong = (name: string): [string[], RegExp][] => [
      [["nobody"], /^spec\.fallbacks\[0\]: /],
      [["spare", name], /^spec\.fallbacks\[1\]: names the model itself/],
      [["spare", "spare"], /^spec\.fallbacks\[1\]: names 'spare' a second time/],
    ];
    for (const [method, path, name] of [
      ["POST", "/models", "new-model"],
      ["PUT", "/models/main-model", "main-model"],
    ] as const)
      for (const [fallbacks, message] of wrong(name)) {
        const told = await call(method, path, { body: { metadata: { name }, spec: { fallbacks } } });
        assert.equal(told.status, 400, `${method} ${fallbacks}`);
        assert.match(told.body.message, message);
      }
    assert.equal((await call("DELETE", "/models/main-model")).status, 200);
  });

  test("a balance names other models that exist, each once, and weights within bounds", async () => {
    await make("/models", "member-model", { runtime: { type: "mock" } });
    const balance = { weight: 0, strategy: "latency", models: [{ name: "member-model", weight: 3 }] };
    const made = await make("/models", "divided", { balance });
    assert.deepEqual(made.spec.balance, balance);
    assert.equal(made.status, "DEPLOYED", "a model whose own weight is 0 needs no connection");
    assert.equal((await call("DELETE", "/models/member-model")).status, 409);
    const wrong: [unknown, RegExp][] = [
      [[], /^spec\.balance\.models: /],
      [[{ name: "nobody" }], /^spec\.balance\.models\[0\]\.name: /],
      [[{ name: "member-model" }, { name: "divided" }], /^spec\.balance\.models\[1\]\.name: names the model itself/],
      [
        [{ name: "member-model" }, { name: "member-model" }],
        /^spec\.balance\.models\[1\]\.name: names 'member-model' a second time/,
      ],
      [[{ name: "member-model", weight: 0 }], /^spec\.balance\.models\[0\]\.weight: /],
    ];
    for (const [models, message] of wrong) {
      const body = { metadata: { name: "divided" }, spec: { balance: { models } } };
      const told = await call("PUT", "/models/divided", { body });
      assert.equal(told.status, 400, JSON.stringify(models));
      assert.match(told.body.message, message);
    }
    assert.equal((await call("DELETE", "/models/divided")).status, 200);
    assert.equal((await call("DELETE", "/models/member-model")).status, 200);
  });

  test("guardrails are patterns of the platform's own and words, and are kept", async () => {
    const guardrails = { redact: { patterns: ["email", "card"], words: ["Falcon"] } };
    const made = await make("/models", "guarded", { runtime: { type: "mock" }, guardrails });
    assert.deepEqual(made.spec.guardrails, guardrails);
    for (const [wrong, message] of [
      [{ patterns: ["(a+)+$"] }, /^spec\.guardrails\.redact\.patterns\[0\]: /],
      [{ words: ["a"] }, /^spec\.guardrails\.redact\.words\[0\]: /],
      [{ regex: ["x"] }, /^spec\.guardrails\.redact/],
    ] as const) {
      const body = {
        metadata: { name: "guarded" },
        spec: { runtime: { type: "mock" }, guardrails: { redact: wrong } },
      };
      const told = await call("PUT", "/models/guarded", { body });
      assert.equal(told.status, 400);
      assert.match(told.body.message, message);
    }
    assert.equal((await call("DELETE", "/models/guarded")).status, 200);
  });

  test("a model that is switched off is DEACTIVATED", async () => {
    const made = await make("/models", "off", { enabled: false, runtime: { type: "mock" } });
    assert.equal(made.status, "DEACTIVATED");
    const on = await call("PUT", "/models/off", { body: { ...made, spec: { ...made.spec, enabled: true } } });
    assert.equal(on.body.status, "DEPLOYED");
  });

  test("a policy needs what its type is about", async () => {
    const cases: [object, RegExp][] = [
      [{}, /spec\.type/],
      [{ type: "maxToken" }, /^spec\.maxTokens: /],
      [{ type: "location", locations: [] }, /^spec\.locations: /],
      [{ type: "flavor" }, /^spec\.flavors: /],
      [{ type: "maxToken", maxTokens: { granularity: "week" } }, /spec\.maxTokens\.granularity/],
      [{ type: "maxToken", maxTokens: { total: -1 } }, /spec\.maxTokens\.total/],
    ];
    for (const [spec, message] of cases) {
      const answer = await call("POST", "/policies", { body: { metadata: { name: "p" }, spec } });
      assert.equal(answer.status, 400);
      assert.match(answer.body.message, message);
    }
  });

  test("usages say who names a policy", async () => {
    await make("/policies", "shared", { type: "location", locations: [{ type: "location", name: "local" }] });
    for (const [path, name] of [
      ["/agents", "a1"],
      ["/agents", "a2"],
      ["/functions", "f1"],
      ["/jobs", "j1"],
      ["/models", "m1"],
    ] as const)
      await make(path, name, { policies: ["shared", "shared"] });
    const { body } = await call("GET", "/policies/shared/usages");
    const names = Object.fromEntries(
      Object.entries(body).map(([word, users]) => [word, (users as { name: string }[]).map((user) => user.name)]),
    );
    const none = { applications: [], sandboxes: [] };
    assert.deepEqual(names, { agents: ["a1", "a2"], functions: ["f1"], jobs: ["j1"], models: ["m1"], ...none });
    const { usage } = (await call("GET", "/policies/shared")).body;
    assert.deepEqual(usage, { agents: 2, applications: 0, functions: 1, jobs: 1, models: 1, sandboxes: 0 });
    assert.equal((await call("GET", "/policies/unknown/usages")).status, 404);
  });
});
