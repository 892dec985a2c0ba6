import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { loadConfig } from "../../src/config.ts";
import { quotasByKind } from "../../src/kinds/quota/quotas.ts";
import { testDatabases } from "../databases.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";
import { makeAccount, makeUser } from "../identities.ts";
import { startTestPlatform, type TestPlatform } from "../platform.ts";

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.all) {
  describe(`catalogues and quotas on ${database.name}`, { skip: database.skip }, () => {
    let platform: TestPlatform;
    const machine = new FakeMachine();
    const call: TestPlatform["call"] = (method, path, options = {}) =>
      platform.call(method, path, { workspace: "main", ...options });
    const get = async (path: string) => {
      const answer = await call("GET", path);
      assert.equal(answer.status, 200, `${path}: ${JSON.stringify(answer.body)}`);
      return answer.body;
    };

    before(async () => {
      platform = await startTestPlatform({
        ...(await database.migrated()),
        driver: fakeDriver(machine),
        config: {
          region: "lab-1",
          egress_pool: "203.0.113.1,2001:db8::1",
          public_ips: "198.51.100.0/24",
          quotas: "drives=3, egressips=1",
          features: "beta-editor",
        },
      });
    });
    after(async () => {
      await platform.stop();
      await machine.dispose();
    });

    test("the installation describes itself", async () => {
      const configuration = await get("/configuration");
      assert.equal(configuration.detectedRegion, "lab-1");
      assert.equal(configuration.regions[0].egressAvailable, true);
      const [location] = await get("/locations");
      assert.equal(location.region, "lab-1");
      assert.equal(location.flavors[0].type, "cpu");
      assert.deepEqual((await get("/publicIps"))["lab-1"], {
        description: "Addresses that traffic of workloads may come from.",
        ipv4Cidrs: ["198.51.100.0/24"],
        ipv6Cidrs: [],
      });
      assert.deepEqual(Object.keys(await get("/publicIps?region=lab-1")), ["lab-1"]);
      assert.deepEqual(await get("/publicIps?region=moon-1"), {});
    });

    test("features are facts and the operator's flags", async () => {
      const { features } = await get("/features");
      assert.equal(features["beta-editor"], true);
      assert.equal(features["egress-addresses"], true);
      assert.equal(features["workload-hosts"], false);
      assert.equal(features["image-builds"], false, "the machine of this test cannot build");
      assert.equal(features["several-servers"], database.name === "postgres");
      const one = await get("/features/beta-editor");
      assert.equal(one.enabled, true);
      assert.equal(one.variant, "on");
      assert.equal((await call("GET", "/features/no-such-flag")).status, 404);
      assert.equal((await call("GET", "/features/constructor")).status, 404);
      assert.equal((await call("GET", "/features/quotas?account=not-mine")).status, 403);
      const [account] = await get("/accounts");
      assert.equal((await get(`/features/quotas?account=${account.id}`)).enabled, true);
    });

    test("a quota holds against many at once, and says what is left", async () => {
      const create = (n: number) => call("POST", "/drives", { body: { metadata: { name: `q${n}` }, spec: {} } });
      const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => create(n)));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 402, 402, 402, 402, 402]);
      const refused = answers.find(({ status }) => status === 402);
      assert.equal(refused?.body.error, "usage_limit_exceeded");
      assert.match(refused?.body.message, /3 of kind drive/);
      const made = answers.find(({ status }) => status === 200)?.body.metadata.name;
      const again = await call("POST", "/drives", { body: { metadata: { name: made }, spec: {} } });
      assert.equal(again.status, 409, "what exists is told before what is full");
      const { quotas } = await get("/quotas");
      const of = (resource: string) => quotas.find((quota: { resource: string }) => quota.resource === resource);
      assert.deepEqual(of("drives"), { resource: "drives", limit: 3, used: 3, remaining: 0 });
      assert.deepEqual(of("volumes"), { resource: "volumes", limit: null, used: 0, remaining: null });
      await call("DELETE", `/drives/${made}`);
      assert.equal((await create(100)).status, 200, "room again");
    });

    test("a quota counts nested resources over the whole workspace, and each workspace for itself", async () => {
      for (const name of ["g1", "g2"])
        await call("POST", "/vpcs/default/egressgateways", { body: { metadata: { name } } });
      const add = (gateway: string, options = {}) =>
        call("POST", `/vpcs/default/egressgateways/${gateway}/ips`, {
          body: { metadata: { name: "ip" }, spec: {} },
          ...options,
        });
      assert.equal((await add("g1")).status, 200);
      assert.equal((await add("g2")).status, 402);
      const { store } = platform.app;
      const other = await makeAccount(store, "elsewhere");
      const owner = await makeUser(store, other.id, "admin", { elsewhere: "admin" });
      const there = { key: owner.key, workspace: "elsewhere" };
      await call("POST", "/vpcs/default/egressgateways", { ...there, body: { metadata: { name: "g1" } } });
      assert.equal((await add("g1", there)).status, 200);
    });

    test("templates are real folders, and their files can be had", async () => {
      const templates = await get("/templates");
      assert.ok(templates.length >= 6);
      for (const template of templates) {
        assert.ok(existsSync(`examples/${template.name}/README.md`), template.name);
        assert.match(template.icon, /^data:image\/svg\+xml;base64,/);
        assert.match(template.sha, /^[0-9a-f]{64}$/);
      }
      const echo = await get("/templates/agent-echo");
      assert.deepEqual(
        echo,
        templates.find((template: { name: string }) => template.name === "agent-echo"),
      );
      const response = await fetch(echo.url, { headers: { authorization: `Bearer ${platform.apiKey}` } });
      const { files, sha } = (await response.json()) as { files: { path: string; content: string }[]; sha: string };
      assert.equal(sha, echo.sha);
      const index = files.find((file) => file.path === "index.js");
      assert.equal(index?.content, readFileSync("examples/agent-echo/index.js", "utf8"));
      assert.equal((await call("GET", "/templates/..%2F..%2Fsrc")).status, 404);
      assert.equal((await call("GET", "/templates/no-such")).status, 404);
      const chat = await get("/templates/agent-chat");
      const model = chat.variables.find((variable: { name: string }) => variable.name === "MODEL");
      assert.deepEqual([model.integration, model.path, model.secret], ["", "", false]);
    });

    test("hubs list what there is, and no more", async () => {
      machine.addImage("service/node:latest");
      const images = await get("/sandbox/hub");
      assert.deepEqual(
        images.map(({ image }: { image: string }) => image),
        ["service/node:latest"],
      );
      const servers = await get("/mcp/hub");
      for (const { name, image } of servers) assert.equal(image, `service/mcp-${name}:latest`);
      assert.ok(servers.some(({ integration }) => integration === "google-drive"));
    });

    test("the changelog is public, with an entry for each release, newest first", async () => {
      const { status, body } = await call("GET", "/changelog", { key: null });
      assert.equal(status, 200);
      const first = body.entries.find((entry: { title: string }) => entry.title === "0.1.0");
      assert.match(first?.content ?? "", /^- \*\*Workspaces\.\*\* /m);
      const dates = body.entries.map((entry: { date: string }) => entry.date);
      assert.deepEqual(dates, [...dates].sort().reverse());
    });
  });
}

test("quotas are read from text and refused when they name nothing", () => {
  const read = (quotas: string) => loadConfig({ flags: { quotas }, env: {}, home: "/nowhere" }).quotas;
  assert.deepEqual(read("drives=3, volumes = 10"), { drives: 3, volumes: 10 });
  for (const bad of ["drives", "drives=-1", "drives=x", "=3"]) assert.throws(() => read(bad), /quotas/);
  assert.deepEqual(quotasByKind({ sandboxes: 2, images: 5 }), { sandbox: 2, image: 5 });
  assert.throws(() => quotasByKind({ unicorns: 1 }), /not a kind of resource/);
});
