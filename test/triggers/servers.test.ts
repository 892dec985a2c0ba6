/** Several servers on one PostgreSQL: each request is delivered by one of them, and each slot fired by one. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { testDatabases } from "../databases.ts";
import { fakeDriver } from "../fake-driver.ts";
import { startTestPlatform, TEST_KEY, type TestPlatform } from "../platform.ts";
import { AGENT_IMAGE, type AgentWorld, agentWorld, minuteClock, thisMinute, until } from "./agent-world.ts";

const databases = await testDatabases();
const clock = minuteClock();
after(() => databases.stop());
const postgres = databases.all.find(({ name }) => name === "postgres") ?? assert.fail();
const REQUESTS = 40;
const TRIGGERS = 30;

describe("triggers of two servers on one database", { skip: postgres.skip }, () => {
  const platforms: TestPlatform[] = [];
  let world: AgentWorld;
  const send = async (platform: TestPlatform, body: string): Promise<void> => {
    const headers = { authorization: `Bearer ${TEST_KEY}` };
    const answer = await fetch(`${platform.url}/main/agents/a?async=true`, { method: "POST", headers, body });
    assert.equal(answer.status, 200);
  };
  const bodies = (): string[] => world.requests.map(({ body }) => body).sort();
  const sentBy = (prefix: string, count: number): string[] =>
    Array.from({ length: count }, (_, n) => `${prefix}${n}`).sort();

  before(async () => {
    world = await agentWorld();
    const { databaseUrl } = await postgres.migrated();
    const config = { secret_key: "one key for all servers of one database", private_callbacks: "true" };
    // One machine, so that both see the same workloads.
    const driver = () => fakeDriver(world.machine);
    for (let n = 0; n < 2; n += 1)
      platforms.push(await startTestPlatform({ databaseUrl, config, clock, driver: driver() }));
    const triggers = [{ id: "t", type: "http-async", configuration: { callbackUrl: world.callbackUrl } }];
    const spec = { runtime: { image: AGENT_IMAGE, memory: 128 }, triggers };
    const made = await platforms[0]?.call("POST", "/agents", { body: { metadata: { name: "a" }, spec } });
    assert.equal(made?.status, 200);
  });
  after(async () => {
    for (const platform of platforms) await platform.stop();
    await world[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    world.requests.length = 0;
    world.callbacks.length = 0;
  });

  test("every request is delivered and called back once", async () => {
    await Promise.all(Array.from({ length: REQUESTS }, (_, n) => send(platforms[n % 2] ?? assert.fail(), `once-${n}`)));
    await until("all callbacks", () => world.callbacks.length >= REQUESTS);
    assert.deepEqual(bodies(), sentBy("once-", REQUESTS));
    assert.equal(world.callbacks.length, REQUESTS);
  });

  test("every slot is fired once", async () => {
    const slot = await thisMinute(clock);
    const triggers = Array.from({ length: TRIGGERS }, (_, n) => ({
      type: "cron",
      configuration: { schedule: slot.pattern, tasks: [{ n }] },
    }));
    const spec = { runtime: { image: AGENT_IMAGE, memory: 128 }, triggers };
    const [one] = platforms;
    const made = await one?.call("POST", "/agents", { body: { metadata: { name: "ticking" }, spec } });
    await one?.app.store.write(({ queries }) =>
      queries
        .updateTable("cron_triggers")
        .set({ next_at: slot.atMs })
        .where("uid", "=", made?.body.metadata.uid ?? "")
        .execute(),
    );
    const left = () => one?.app.store.database.read.selectFrom("deliveries").select("id").execute();
    await until("all slots", () => world.requests.length >= TRIGGERS);
    await until("nothing is left", async () => (await left())?.length === 0);
    assert.deepEqual(
      world.requests.map(({ body }) => JSON.parse(body).n).sort((a, b) => a - b),
      triggers.map((_, n) => n),
    );
  });

  test("what a server has in hand when it stops, the other delivers", async () => {
    const [one, two] = platforms;
    assert.ok(one && two);
    world.gate.shut();
    await Promise.all(Array.from({ length: 10 }, (_, n) => send(n % 2 ? one : two, `left-${n}`)));
    await until("all are in hand", () => world.requests.length === 10);
    const stopped = one.stop();
    platforms.shift();
    world.gate.open();
    await stopped;
    await until("all callbacks", () => world.callbacks.length >= 10);
    assert.deepEqual([...new Set(bodies())], sentBy("left-", 10));
    assert.deepEqual(world.doubled, []);
  });
});
