/** Requests that nobody waits for: kept, delivered, called back. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { verifyWebhook } from "../../src/lib/network/webhook-signature.ts";
import { testDatabases } from "../databases.ts";
import { fakeDriver } from "../fake-driver.ts";
import { type Answer, startTestPlatform, TEST_KEY, type TestPlatform } from "../platform.ts";
import { AGENT_IMAGE, type AgentWorld, agentWorld, type Got, until } from "./agent-world.ts";

const databases = await testDatabases();
after(() => databases.stop());

for (const database of databases.aboveStore) {
  describe(`asynchronous requests on ${database.name}`, { skip: database.skip }, () => {
    let world: AgentWorld;
    let platform: TestPlatform;
    let secret: string;

    const make = async (name: string, spec: object, path = "agents"): Promise<Answer["body"]> => {
      const body = { metadata: { name }, spec: { runtime: { image: AGENT_IMAGE, memory: 128 }, ...spec } };
      const { status, body: made } = await platform.call("POST", `/${path}`, { body });
      assert.equal(status, 200, JSON.stringify(made));
      return made;
    };
    const ask = async (path: string, init: RequestInit = {}): Promise<{ status: number; body: string; id: string }> => {
      const headers = { "x-service-authorization": `Bearer ${TEST_KEY}`, ...init.headers };
      const answer = await fetch(`${platform.url}/main/${path}`, { method: "POST", ...init, headers });
      return { status: answer.status, body: await answer.text(), id: answer.headers.get("x-request-id") ?? "" };
    };
    const isSigned = ({ headers, body }: Got): boolean => {
      const given = {
        signature: String(headers["x-service-signature"]),
        timestamp: String(headers["x-service-timestamp"]),
      };
      return verifyWebhook(secret, body, given, Date.now());
    };
    const waiting = async (): Promise<number> => {
      const rows = await platform.app.store.database.read.selectFrom("deliveries").select("id").execute();
      return rows.length;
    };

    before(async () => {
      world = await agentWorld();
      platform = await startTestPlatform({
        ...(await database.migrated()),
        driver: fakeDriver(world.machine),
        config: { private_callbacks: "true" },
      });
      const made = await make("worker", {
        triggers: [
          { id: "later", type: "http-async", configuration: { callbackUrl: world.callbackUrl, retry: 2 } },
          { id: "hook", type: "http-async", configuration: { path: "hooks/in", authenticationType: "public" } },
          { id: "own", type: "http-async", configuration: { path: "agents/worker/queue" } },
        ],
      });
      secret = made.spec.triggers[0].configuration.callbackSecret;
    });
    after(async () => {
      await platform.stop();
      await world[Symbol.asyncDispose]();
    });
    beforeEach(() => {
      world.requests.length = 0;
      world.callbacks.length = 0;
    });

    test("?async=true is answered at once, delivered as it was, and called back with a signature", async () => {
      world.gate.shut();
      const sent = await ask("agents/worker/run/it?async=true&x=%2F", {
        body: "héllo",
        headers: { authorization: "Basic own", "x-mine": "1", "x-service-thread-id": "t" },
      });
      assert.deepEqual([sent.status, sent.body], [200, '{"success":true}']);
      await until("the request arrives", () => world.requests.length);
      assert.equal(world.callbacks.length, 0);
      const [got] = world.requests;
      assert.deepEqual([got?.method, got?.url, got?.body], ["POST", "/run/it?async=true&x=%2F", "héllo"]);
      assert.equal(got?.headers["x-mine"], "1");
      assert.equal(got?.headers["x-service-thread-id"], "t");
      assert.equal(got?.headers.authorization, "Basic own");
      assert.equal(got?.headers["x-service-authorization"], undefined);
      assert.equal(got?.headers["x-request-id"], sent.id);
      world.gate.open();
      const callback = await until("the callback", () => world.callbacks[0]);
      assert.ok(isSigned(callback), "signed with the trigger's secret");
      assert.equal(verifyWebhook(secret, `${callback.body} `, signatureOf(callback), Date.now()), false);
      assert.equal(verifyWebhook(secret, callback.body, signatureOf(callback), Date.now() + 301_000), false);
      const { timestamp, ...told } = JSON.parse(callback.body) as Record<string, unknown>;
      assert.deepEqual(told, {
        status_code: 200,
        response_body: "seen héllo",
        response_length: Buffer.byteLength("seen héllo"),
        request_id: sent.id,
      });
      assert.ok(Math.abs(Number(timestamp) - Date.now() / 1000) < 60);
      await until("nothing is left", async () => (await waiting()) === 0);
    });

    test("an answer of 500 is asked again as often as the trigger says, and a callback until it is taken", async () => {
      world.answers.agent.push(500, 503);
      world.answers.callback.push(500);
      await ask("agents/worker?async=true", { body: "again" });
      await until("the second callback", () => world.callbacks.length === 2);
      assert.equal(world.requests.length, 3);
      assert.ok(world.callbacks.every(isSigned));
      assert.equal(JSON.parse(world.callbacks[1]?.body ?? "").status_code, 200);
    });

    test("triggers at paths of their own need the credentials that they say", async () => {
      assert.equal(
        (await ask("hooks/in/deep?q=1", { body: "a", headers: { "x-service-authorization": "" } })).status,
        200,
      );
      assert.equal((await ask("hooks/in", { headers: { "x-service-authorization": "" } })).status, 200);
      assert.equal((await ask("hooks/inside")).status, 404);
      assert.equal((await ask("agents/worker/queue/x", { headers: { "x-service-authorization": "" } })).status, 401);
      assert.equal((await ask("agents/worker/queue/x")).status, 200);
      await until("all arrive", () => world.requests.length === 3);
      assert.deepEqual(world.requests.map(({ url }) => url).sort(), ["/", "/deep?q=1", "/x"]);
      assert.equal(world.callbacks.length, 0, "their triggers have no callback");
      const sync = await ask("agents/worker/other", { body: "now" });
      assert.deepEqual([sync.status, sync.body], [200, "seen now"], "the agent's own address answers itself");
    });

    test("what is too large or not allowed is refused and not kept", async () => {
      await until("those before are over", async () => (await waiting()) === 0);
      const large = await ask("agents/worker?async=true", { body: "x".repeat(4 * 1024 * 1024 + 1) });
      assert.equal(large.status, 413);
      const chunks = new Blob(["x".repeat(3 * 1024 * 1024), "y".repeat(3 * 1024 * 1024)]).stream();
      const streamed = await ask("agents/worker?async=true", { body: chunks, duplex: "half" } as RequestInit);
      assert.equal(streamed.status, 413);
      assert.equal((await ask("agents/worker?async=true", { headers: { "x-service-authorization": "" } })).status, 401);
      assert.equal((await ask("agents/nobody?async=true")).status, 404);
      assert.equal(await waiting(), 0);
      const counts = await platform.app.store.database.read.selectFrom("delivery_counts").selectAll().execute();
      const [{ waiting: counted, bytes } = assert.fail()] = counts;
      assert.deepEqual([counted, bytes], [0, 0], "the counters agree with the rows");
    });

    test("every request is counted once", async () => {
      const countOf = async (): Promise<number> => {
        const rows = await platform.app.store.database.read
          .selectFrom("usage_events as e")
          .innerJoin("usage_series as s", "s.id", "e.series_id")
          .select((eb) => eb.fn.sum<number>("e.quantity").as("n"))
          .where("s.dimension", "=", "agent_async_requests_count")
          .where("s.named", "=", 1)
          .executeTakeFirst();
        return Number(rows?.n ?? 0);
      };
      const before = await countOf();
      world.answers.agent.push(500);
      await Promise.all([ask("agents/worker?async=true"), ask("hooks/in"), ask("agents/worker", { body: "sync" })]);
      await until("both are delivered", async () => (await waiting()) === 0);
      assert.equal(await countOf(), before + 2);
    });

    test("a workload that is gone ends it, and a callback address that is refused is told", async () => {
      await make("short", {
        triggers: [{ id: "t", type: "http-async", configuration: { callbackUrl: world.callbackUrl } }],
      });
      world.gate.shut();
      await ask("agents/short?async=true");
      await until("it arrives", () => world.requests.length);
      await platform.call("DELETE", "/agents/short");
      world.gate.open();
      await until("nothing is left", async () => (await waiting()) === 0);
      assert.equal(world.callbacks.length, 0, "the secret went with the agent");

      const triggers = [{ id: "t", type: "http-async", configuration: { callbackUrl: "http://[fe80::1]/" } }];
      const refused = await platform.call("POST", "/agents", {
        body: { metadata: { name: "no" }, spec: { triggers } },
      });
      assert.deepEqual([refused.status, /callbackUrl: must be a public/.test(refused.body.message)], [400, true]);
    });
  });
}

const signatureOf = ({ headers }: Got) => ({
  signature: String(headers["x-service-signature"]),
  timestamp: String(headers["x-service-timestamp"]),
});
