/** What all deployed workloads have in common, shown on agents, functions and jobs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MASK } from "../../src/contract/secret-fields.ts";
import { onEachDatabase } from "../each-platform.ts";
import { makeUser } from "../identities.ts";

const KINDS = ["agents", "functions", "jobs"] as const;

await onEachDatabase("agents, functions and jobs", ({ call, make, store, url }) => {
  for (const plural of KINDS) {
    test(`${plural}: a record says what is wanted and that nothing runs yet`, async () => {
      const made = await make(`/${plural}`, "first", { runtime: { image: "x:1" }, somethingNew: { kept: true } });
      assert.equal(made.metadata.url, `${url()}/main/${plural}/first`);
      assert.equal(made.status, "DEPLOYING");
      assert.equal(made.events[0].type, "created");
      assert.equal(made.spec.enabled, true);
      assert.equal(made.spec.region, "local");
      assert.equal(made.spec.runtime.generation, "mk3");
      assert.equal(made.spec.runtime.memory, 2048);
      assert.deepEqual(made.spec.somethingNew, { kept: true });
      const again = await call("POST", `/${plural}`, { body: { metadata: { name: "first" }, spec: {} } });
      assert.deepEqual([again.status, again.body.code, again.body.error], [409, 409, "already_exists"]);
      const listed = await call("GET", `/${plural}?q=firs`);
      assert.equal(listed.body.data[0].metadata.name, "first");
      assert.equal(listed.body.data[0].events, undefined);
      assert.ok(Array.isArray((await call("GET", `/${plural}`, { version: "2026-04-16" })).body));
      const gone = await call("DELETE", `/${plural}/first`);
      assert.equal(gone.body.status, "DELETING");
      assert.equal((await call("GET", `/${plural}/first`)).status, 404);
    });

    test(`${plural}: enabled=false is DEACTIVATED`, async () => {
      const made = await make(`/${plural}`, "off", { enabled: false });
      assert.equal(made.status, "DEACTIVATED");
      const on = await call("PUT", `/${plural}/off`, { body: { ...made, spec: { ...made.spec, enabled: true } } });
      assert.equal(on.body.status, "DEPLOYING");
      const off = await call("PUT", `/${plural}/off`, { body: made });
      assert.equal(off.body.status, "DEACTIVATED");
    });

    test(`${plural}: secrets are masked, kept through a round trip and shown to admins who ask`, async () => {
      const envs = [
        { name: "OPEN", value: "1" },
        { name: "KEY", value: "hush", secret: true },
      ];
      const made = await make(`/${plural}`, "secretive", { runtime: { envs, dockerConfig: '{"auths":{}}' } });
      assert.deepEqual(
        made.spec.runtime.envs.map((env: { value: string }) => env.value),
        ["1", MASK],
      );
      assert.equal(made.spec.runtime.dockerConfig, MASK);
      const forgetful = structuredClone(made);
      Object.assign(forgetful.spec.runtime, { envs: forgetful.spec.runtime.envs.map(({ secret, ...env }) => env) });
      const put = await call("PUT", `/${plural}/secretive`, { body: forgetful });
      assert.deepEqual(put.body.spec.runtime.envs[1], { name: "KEY", value: MASK, secret: true });
      const shown = await call("GET", `/${plural}/secretive?show_secrets=true`);
      assert.equal(shown.body.spec.runtime.envs[1].value, "hush");
      const accountId = (await store().people.listAccountsAcrossUsers())[0]?.id ?? "";
      const member = await makeUser(store(), accountId, "member", { main: "member" });
      const refused = await call("GET", `/${plural}/secretive?show_secrets=true`, { key: member.key });
      assert.equal(refused.status, 403);
      const page = await call("GET", `/${plural}?q=secretive&show_secrets=true`);
      assert.doesNotMatch(JSON.stringify(page.body), /hush/);
    });

    test(`${plural}: revisions are kept, the last five, newest first`, async () => {
      const made = await make(`/${plural}`, "versioned");
      for (let n = 1; n <= 6; n += 1)
        await call("PUT", `/${plural}/versioned`, {
          body: { ...made, spec: { ...made.spec, runtime: { ...made.spec.runtime, image: `x:${n}` } } },
        });
      const revisions = await call("GET", `/${plural}/versioned/revisions`);
      assert.deepEqual(
        revisions.body.map((revision: { id: string }) => revision.id),
        ["7", "6", "5", "4", "3"],
      );
      assert.equal(revisions.body[0].active, true);
      const current = (await call("GET", `/${plural}/versioned`)).body;
      await call("PUT", `/${plural}/versioned`, {
        body: { ...current, spec: { ...current.spec, revision: { active: "5", canary: "6", canaryPercent: 10 } } },
      });
      const after = await call("GET", `/${plural}/versioned/revisions`);
      assert.deepEqual(
        after.body.map(({ id, active, canary, trafficPercent }: Record<string, unknown>) => [
          id,
          active,
          canary,
          trafficPercent,
        ]),
        [
          ["7", false, false, 0],
          ["6", false, true, 10],
          ["5", true, false, 90],
          ["4", false, false, 0],
          ["3", false, false, 0],
        ],
      );
    });

    test(`${plural}: traffic goes to revisions that are kept, and a new one takes over from the latest only`, async () => {
      const made = await make(`/${plural}`, "traffic", { revision: { active: "99", stickySessionTtl: 5 } });
      assert.deepEqual(made.spec.revision, { stickySessionTtl: 5 });
      const put = async (image: string, revision: object) =>
        call("PUT", `/${plural}/traffic`, {
          body: { metadata: { name: "traffic" }, spec: { runtime: { image }, revision } },
        });
      const unknown = await put("x:1", { active: "99" });
      assert.equal(unknown.status, 400);
      assert.match(unknown.body.message, /^spec\.revision\.active: there is no revision '99'; kept are 1\./);
      const named = await put("x:1", { active: "1" });
      assert.equal(named.body.spec.revision.active, undefined, "the first was the latest: the second takes over");
      const pinned = await put("x:1", { active: "1" });
      assert.equal(pinned.body.spec.revision.active, "1");
      for (let n = 2; n <= 8; n += 1) await put(`x:${n}`, { active: "1" });
      const { body } = await call("GET", `/${plural}/traffic/revisions`);
      assert.equal(body.length, 5);
      assert.deepEqual(
        body.filter((revision) => revision.active).map((revision) => revision.id),
        ["1"],
      );
      assert.ok(Number(body[0].id) > 9, "the newest is kept and first");
    });

    test(`${plural}: a callback has a secret that is shown once`, async () => {
      const triggers = [{ type: "http-async", configuration: { callbackUrl: "https://example.test/done", retry: 2 } }];
      const made = await make(`/${plural}`, "calls-back", { triggers });
      const [trigger] = made.spec.triggers;
      assert.equal(trigger.id, "trigger-1");
      assert.match(trigger.configuration.callbackSecret, /^[\w-]{43}$/);
      const read = await call("GET", `/${plural}/calls-back`);
      assert.equal(read.body.spec.triggers[0].configuration.callbackSecret, MASK);
      const withOwn = structuredClone(read.body);
      withOwn.spec.triggers[0].configuration.callbackSecret = "chosen-by-the-client";
      const two = { id: "two", configuration: { callbackUrl: "http://example.test/2" } };
      const spec = { ...withOwn.spec, triggers: [...withOwn.spec.triggers, two] };
      const put = await call("PUT", `/${plural}/calls-back`, { body: { ...withOwn, spec } });
      assert.equal(put.body.spec.triggers[0].configuration.callbackSecret, MASK);
      assert.match(put.body.spec.triggers[1].configuration.callbackSecret, /^[\w-]{43}$/);
      const shown = await call("GET", `/${plural}/calls-back?show_secrets=true`);
      assert.equal(shown.body.spec.triggers[0].configuration.callbackSecret, trigger.configuration.callbackSecret);
    });
  }

  test("what is wrong is refused with its path", async () => {
    const cases: [string, object, RegExp][] = [
      [
        "agents",
        { runtime: { envs: [{ name: "OK" }, { name: "BL_NAME", value: "x" }] } },
        /^spec\.runtime\.envs\[1\]\.name: /,
      ],
      ["agents", { runtime: { envs: [{ name: "A=B" }] } }, /spec\.runtime\.envs\[0\]\.name/],
      ["agents", { runtime: { minScale: 3, maxScale: 2 } }, /spec\.runtime\.minScale/],
      ["agents", { triggers: [{ type: "cron", configuration: {} }] }, /spec\.triggers\[0\]\.configuration\.schedule/],
      ["agents", { triggers: [{ configuration: { schedule: "* * *" } }] }, /cron pattern of five fields/],
      ["agents", { triggers: [{ configuration: { schedule: "0 0 30 2 *" } }] }, /never comes/],
      ["agents", { triggers: [{ id: "a" }, { id: "a" }] }, /spec\.triggers\[1\]\.id/],
      ["agents", { triggers: [{ configuration: { callbackUrl: "ftp://x" } }] }, /callbackUrl: must be an http/],
      ["agents", { policies: ["nowhere"] }, /^spec\.policies\[0\]: policy 'nowhere' does not exist/],
      ["functions", { integrationConnections: ["nowhere"] }, /^spec\.integrationConnections\[0\]: /],
      ["jobs", { volumes: [{ name: "v", mountPath: "/v", type: "persistent" }] }, /spec\.volumes\[0\]\.type/],
      ["jobs", { volumes: [{ name: "v", mountPath: "/v", type: "ephemeral" }] }, /spec\.volumes\[0\]\.sizeMb/],
      ["jobs", { runtime: { maxRetries: -1 } }, /spec\.runtime\.maxRetries/],
    ];
    for (const [plural, spec, message] of cases) {
      const answer = await call("POST", `/${plural}`, { body: { metadata: { name: "wrong" }, spec } });
      assert.equal(answer.status, 400, JSON.stringify(spec));
      assert.match(answer.body.message, message);
      assert.equal((await call("GET", `/${plural}/wrong`)).status, 404);
    }
  });

  test("switches of the platform may be set, and the last of several entries counts", async () => {
    const envs = [
      { name: "BL_LOG_LEVEL", value: "debug" },
      { name: "A", value: "1" },
      { name: "A", value: "2" },
    ];
    const made = await make("/agents", "switches", { runtime: { envs } });
    assert.deepEqual(made.spec.runtime.envs, [
      { name: "BL_LOG_LEVEL", value: "debug" },
      { name: "A", value: "2" },
    ]);
  });

  test("one path leads to one workload of a workspace", async () => {
    const triggers = [{ type: "http", configuration: { path: "/hooks/mine/" } }];
    await make("/agents", "hook-a", { triggers });
    const taken = await call("POST", "/functions", {
      body: {
        metadata: { name: "hook-b" },
        spec: { triggers: [{ type: "http-async", configuration: { path: "hooks/mine" } }] },
      },
    });
    assert.equal(taken.status, 409);
    assert.match(taken.body.message, /in use by agent 'hook-a'/);
    await call("DELETE", "/agents/hook-a");
    await make("/functions", "hook-b", { triggers });
  });

  test("what clients send beyond the contract is accepted", async () => {
    const made = await make("/functions", "mcp", {
      type: "mcp",
      runtime: { type: "mcp", transport: "websocket", skipBuild: "true" },
    });
    assert.equal(made.spec.runtime.transport, "websocket");
    const job = await make("/jobs", "runner", {
      runtime: { maxConcurrentTasks: 3, timeout: 60 },
      githubRunner: {},
      volumes: [{ name: "tmp", mountPath: "/scratch", type: "ephemeral", sizeMb: 10 }],
    });
    assert.equal(job.spec.runtime.maxConcurrentTasks, 3);
  });
});
