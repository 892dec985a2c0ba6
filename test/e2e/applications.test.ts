import assert from "node:assert/strict";
import { test } from "node:test";
import { MASK } from "../../src/contract/secret-fields.ts";
import { onEachDatabase } from "../each-platform.ts";

await onEachDatabase("applications", ({ call, make, store, url }) => {
  test("an application is written flat and read with its revisions", async () => {
    const envs = [{ name: "KEY", value: "hush", secret: true }];
    const made = await make("/applications", "shop", { image: "shop:1", envs });
    assert.equal(made.status, "DEPLOYING");
    assert.equal(made.metadata.url, `${url()}/main/applications/shop`);
    assert.deepEqual(
      [made.spec.memory, made.spec.port, made.spec.enabled, made.spec.proxy, made.spec.region],
      [2048, 8080, true, false, "local"],
    );
    assert.equal(made.spec.revisions.length, 1);
    assert.deepEqual(made.spec.revisions[0].envs, [{ name: "KEY", value: MASK, secret: true }]);
    assert.equal(made.spec.revisions[0].image, "shop:1");
    const asked = await call("GET", "/applications/shop?show_secrets=true");
    assert.equal(asked.body.spec.envs[0].value, MASK);
    const listed = await call("GET", "/applications?q=shop");
    assert.equal(listed.body.data[0].spec.revisions, undefined);
    assert.doesNotMatch(JSON.stringify([made, listed.body]), /hush/);
  });

  test("what was read may be written back, and the flat members count", async () => {
    const made = await make("/applications", "echo", {
      image: "echo:1",
      envs: [{ name: "K", value: "v", secret: true }],
    });
    const same = await call("PUT", "/applications/echo", { body: made });
    assert.equal(same.body.spec.revisions.length, 1);
    const changed = structuredClone(same.body);
    changed.spec.image = "echo:2";
    const put = await call("PUT", "/applications/echo", { body: changed });
    assert.deepEqual(
      put.body.spec.revisions.map((revision: { id: string; image: string }) => [revision.id, revision.image]),
      [
        ["2", "echo:2"],
        ["1", "echo:1"],
      ],
    );
    const stored = await store().resources.get({ workspace: "main", kind: "application", parent: "" }, "echo");
    assert.ok(stored);
    assert.deepEqual(store().resources.secretsOf(stored), { "/spec/envs/K/value": "v" });
    assert.equal(stored.spec.revisions, undefined);
  });

  test("the first revision stands for the flat members where those are absent", async () => {
    const made = await make("/applications", "by-cli", {
      port: 3000,
      revisions: [{ image: "cli:1", memory: 512, envs: [{ name: "A", value: "b" }] }],
    });
    assert.deepEqual(
      [made.spec.image, made.spec.memory, made.spec.port, made.spec.envs],
      ["cli:1", 512, 3000, [{ name: "A", value: "b" }]],
    );
    const { body } = await call("GET", "/applications/by-cli/revisions");
    assert.deepEqual(
      body.map(({ id, image, memory, port }: Record<string, unknown>) => [id, image, memory, port]),
      [["1", "cli:1", 512, 3000]],
    );
  });

  test("five revisions are kept", async () => {
    const made = await make("/applications", "often", { image: "o:0" });
    for (let n = 1; n <= 6; n += 1)
      await call("PUT", "/applications/often", { body: { ...made, spec: { image: `o:${n}` } } });
    const { body } = await call("GET", "/applications/often/revisions");
    assert.deepEqual(
      body.map(({ image }: { image: string }) => image),
      ["o:6", "o:5", "o:4", "o:3", "o:2"],
    );
  });

  test("addresses of its own need a verified domain, reserved names are refused", async () => {
    const refused = await call("POST", "/applications", {
      body: { metadata: { name: "hosted" }, spec: { urls: [{ domain: "nowhere.test", subdomain: "a" }] } },
    });
    assert.equal(refused.status, 400);
    assert.match(refused.body.message, /^spec\.urls\[0\]: 'a\.nowhere\.test' is not below a verified/);
    const env = await call("POST", "/applications", {
      body: { metadata: { name: "hosted" }, spec: { envs: [{ name: "BL_TYPE", value: "x" }] } },
    });
    assert.match(env.body.message, /^spec\.envs\[0\]\.name: /);
    const off = await make("/applications", "off", { enabled: false });
    assert.equal(off.status, "DEACTIVATED");
  });
});
