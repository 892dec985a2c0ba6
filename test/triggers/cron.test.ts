/** Cron triggers of agents and jobs, HTTP triggers of jobs, and what executions tell when they end. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { verifyWebhook } from "../../src/lib/network/webhook-signature.ts";
import { DAY_MS, MINUTE_MS } from "../../src/lib/time/clock.ts";
import { testDatabases } from "../databases.ts";
import { fakeDriver } from "../fake-driver.ts";
import { type Answer, startTestPlatform, TEST_KEY, type TestPlatform } from "../platform.ts";
import { AGENT_IMAGE, type AgentWorld, agentWorld, type Got, minuteClock, thisMinute, until } from "./agent-world.ts";

const databases = await testDatabases();
const clock = minuteClock();
after(() => databases.stop());

for (const database of databases.aboveStore) {
  describe(`cron triggers on ${database.name}`, { skip: database.skip }, () => {
    let world: AgentWorld;
    let platform: TestPlatform;

    const make = async (path: string, name: string, spec: object): Promise<Answer["body"]> => {
      const runtime = { image: AGENT_IMAGE, memory: 128, ...(path === "jobs" ? { command: ["true"] } : {}) };
      const { status, body } = await platform.call("POST", `/${path}`, {
        body: { metadata: { name }, spec: { runtime, ...spec } },
      });
      assert.equal(status, 200, JSON.stringify(body));
      return body;
    };
    const read = async (path: string): Promise<Answer["body"]> => (await platform.call("GET", path)).body;
    const rows = () => platform.app.store.database.read.selectFrom("cron_triggers").selectAll().execute();
    const rowsOf = async (uid: string) => (await rows()).filter((row) => row.uid === uid);
    /** As if its next time had been this one. */
    const becomesDue = (uid: string, next_at: number) =>
      platform.app.store.write(({ queries }) =>
        queries.updateTable("cron_triggers").set({ next_at }).where("uid", "=", uid).execute(),
      );
    const isSigned = ({ headers, body }: Got, secret: string): boolean =>
      verifyWebhook(
        secret,
        body,
        { signature: String(headers["x-service-signature"]), timestamp: String(headers["x-service-timestamp"]) },
        clock.now(),
      );
    const skippedOf = async (path: string): Promise<string[]> =>
      (await read(path)).events
        .filter(({ type }: { type: string }) => type === "skipped")
        .map(({ message }: { message: string }) => message);

    before(async () => {
      world = await agentWorld();
      platform = await startTestPlatform({
        ...(await database.migrated()),
        driver: fakeDriver(world.machine),
        clock,
        config: { private_callbacks: "true" },
      });
    });
    after(async () => {
      await platform.stop();
      await world[Symbol.asyncDispose]();
    });
    beforeEach(() => {
      world.requests.length = 0;
      world.callbacks.length = 0;
    });

    test("an agent gets a request for each task, once for a slot", async () => {
      const slot = await thisMinute(clock);
      const configuration = { schedule: slot.pattern, path: "/tick?x=1", tasks: [{ inputs: "a" }, { inputs: "b" }] };
      const { metadata } = await make("agents", "ticking", { triggers: [{ id: "t", type: "cron", configuration }] });
      const [row] = await rowsOf(metadata.uid);
      assert.equal(row?.next_at, slot.atMs + DAY_MS);
      await becomesDue(metadata.uid, slot.atMs);
      await until("both requests", () => world.requests.length === 2);
      assert.deepEqual(world.requests.map(({ body }) => body).sort(), ['{"inputs":"a"}', '{"inputs":"b"}']);
      for (const { method, url, headers } of world.requests) {
        assert.deepEqual([method, url, headers["content-type"]], ["POST", "/tick?x=1", "application/json"]);
        assert.equal(headers["x-service-trigger-id"], "t");
        assert.equal(headers["x-service-trigger-time"], new Date(slot.atMs).toISOString());
      }
      assert.equal((await rowsOf(metadata.uid))[0]?.next_at, slot.atMs + DAY_MS);
      assert.deepEqual(await skippedOf("/agents/ticking"), []);
    });

    test("what no server was there for is written down as skipped and not made good", async () => {
      const slot = await thisMinute(clock);
      const triggers = [{ id: "late", type: "cron", configuration: { schedule: slot.pattern } }];
      const { metadata } = await make("agents", "missing", { triggers });
      await becomesDue(metadata.uid, slot.atMs - 3 * DAY_MS);
      await until("today's request", () => world.requests.length);
      const time = (days: number): string => new Date(slot.atMs - days * DAY_MS).toISOString();
      assert.deepEqual(await skippedOf("/agents/missing"), [
        `Trigger 'late' was skipped 3 times from ${time(3)} to ${time(1)}: no server ran then, nor within 60 seconds after it.`,
      ]);
      const early = new Date(slot.atMs - 5 * MINUTE_MS);
      const pattern = `${early.getUTCMinutes()} ${early.getUTCHours()} * * *`;
      const sent = await make("agents", "passed", {
        triggers: [{ id: "l", type: "cron", configuration: { schedule: pattern } }],
      });
      await becomesDue(sent.metadata.uid, early.getTime());
      await until("it is skipped", async () => (await skippedOf("/agents/passed")).length === 1);
      assert.equal(world.requests.length, 1, "one request, of the slot that was not too late");
      assert.equal((await rowsOf(sent.metadata.uid))[0]?.next_at, early.getTime() + DAY_MS);
    });

    test("what is off has no times, and a change of something else keeps them", async () => {
      const triggers = [{ id: "t", type: "cron", configuration: { schedule: "0 9 * * 1", timezone: "Asia/Kolkata" } }];
      const made = await make("agents", "changing", { triggers });
      const { uid } = made.metadata;
      const put = (spec: object) =>
        platform.call("PUT", "/agents/changing", {
          body: { metadata: { name: "changing" }, spec: { ...made.spec, ...spec } },
        });
      const [first] = await rowsOf(uid);
      assert.equal(new Date(first?.next_at ?? 0).toISOString().slice(10), "T03:30:00.000Z");
      await becomesDue(uid, (first?.next_at ?? 0) + MINUTE_MS);
      await put({ policies: [] });
      assert.equal((await rowsOf(uid))[0]?.next_at, (first?.next_at ?? 0) + MINUTE_MS);
      await put({ triggers: [{ ...triggers[0], enabled: false }] });
      assert.deepEqual(await rowsOf(uid), []);
      await put({ triggers });
      assert.equal((await rowsOf(uid))[0]?.next_at, first?.next_at);
      await put({ enabled: false });
      assert.deepEqual(await rowsOf(uid), []);
      await put({ enabled: true });
      assert.equal((await rowsOf(uid)).length, 1);
      await platform.call("DELETE", "/agents/changing");
      assert.deepEqual(await rowsOf(uid), []);
    });

    test("a job gets one execution for a slot, and its end is called back", async () => {
      const slot = await thisMinute(clock);
      const configuration = {
        schedule: slot.pattern,
        tasks: [{ n: 1 }, { n: 2 }],
        timeout: 77,
        callbackUrl: world.callbackUrl,
      };
      const made = await make("jobs", "nightly", { triggers: [{ id: "c", type: "cron", configuration }] });
      await becomesDue(made.metadata.uid, slot.atMs);
      const callback = await until("the callback", () => world.callbacks[0]);
      assert.ok(isSigned(callback, made.spec.triggers[0].configuration.callbackSecret));
      const { data } = await read("/jobs/nightly/executions");
      assert.equal(data.length, 1);
      assert.deepEqual([data[0].status, data[0].stats.success, data[0].spec.timeout], ["succeeded", 2, 77]);
      const told = JSON.parse(callback.body);
      assert.deepEqual([told.status_code, told.request_id], [200, data[0].metadata.id]);
      const { status, stats, executionId } = JSON.parse(told.response_body);
      assert.deepEqual([status, stats.success, executionId], ["succeeded", 2, data[0].metadata.id]);
      const off = await make("jobs", "undeployed", {
        runtime: { memory: 128 },
        triggers: [{ id: "c", type: "cron", configuration: { schedule: slot.pattern } }],
      });
      await becomesDue(off.metadata.uid, slot.atMs);
      const [why] = await until("the reason", () => skippedOf("/jobs/undeployed").then((all) => all.length && all));
      assert.match(why ?? "", /^Trigger 'c' was skipped: /);
    });

    test("a job is started at a path of its own, as its trigger says and with credentials", async () => {
      const configuration = {
        path: "hooks/job",
        tasks: [{ n: 1 }, { n: 2 }, { n: 3 }],
        callbackUrl: world.callbackUrl,
      };
      const made = await make("jobs", "hooked", { triggers: [{ id: "h", type: "http", configuration }] });
      const start = (path: string, body: object | undefined, key = TEST_KEY): Promise<Response> =>
        fetch(`${platform.url}/main/${path}`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, ...(body ? { "content-type": "application/json" } : {}) },
          ...(body ? { body: JSON.stringify(body) } : {}),
        });
      assert.equal((await start("hooks/job", undefined, "wrong-key-of-nobody")).status, 401);
      const { executionId } = (await (await start("hooks/job", undefined)).json()) as { executionId: string };
      const callback = await until("the callback", () => world.callbacks[0]);
      assert.ok(isSigned(callback, made.spec.triggers[0].configuration.callbackSecret));
      assert.equal(JSON.parse(callback.body).request_id, executionId);
      assert.equal((await read(`/jobs/hooked/executions/${executionId}`)).stats.total, 3);
      const own = (await (await start("hooks/job", { tasks: [{}] })).json()) as { executionId: string };
      assert.equal((await read(`/jobs/hooked/executions/${own.executionId}`)).stats.total, 1);
      await until("the second callback", () => world.callbacks.length === 2);
      // What a client starts itself is its own to watch.
      const direct = await platform.call("POST", "/jobs/hooked/executions", { body: {} });
      await until(
        "it ends",
        async () => (await read(`/jobs/hooked/executions/${direct.body.executionId}`)).metadata.completedAt,
      );
      assert.equal((await platform.call("POST", "/jobs/hooked/executions?trigger=nope", { body: {} })).status, 404);
      made.spec.triggers[0].enabled = false;
      await platform.call("PUT", "/jobs/hooked", { body: made });
      assert.equal((await start("hooks/job", undefined)).status, 404);
      assert.equal(world.callbacks.length, 2);
    });

    test("what is wrong is refused with its path", async () => {
      const cases: [string, object, RegExp][] = [
        [
          "agents",
          { type: "cron", configuration: { schedule: "0 9 * * *", timezone: "Mars" } },
          /\.timezone: 'Mars' is not/,
        ],
        ["agents", { configuration: { schedule: "0 9 * * *", tasks: Array(101).fill({}) } }, /\.tasks: must not/],
        [
          "agents",
          { configuration: { schedule: "0 9 * * *", path: "/x HTTP/1.1\r\nA: b" } },
          /\.path: must be a path as/,
        ],
        ["agents", { configuration: { path: "agents/other/x" } }, /\.path: begins like the address of another/],
        ["agents", { configuration: { path: "a//b" } }, /\.path: must be segments/],
        ["agents", { configuration: { path: Array(17).fill("a").join("/") } }, /\.path: must not have more than 16/],
        ["jobs", { configuration: { authenticationType: "public" } }, /\.authenticationType: a job is started with/],
      ];
      for (const [path, trigger, message] of cases) {
        const body = { metadata: { name: "wrong" }, spec: { triggers: [trigger] } };
        const answer = await platform.call("POST", `/${path}`, { body });
        assert.equal(answer.status, 400, JSON.stringify(trigger));
        assert.match(answer.body.message, message);
      }
    });
  });
}
