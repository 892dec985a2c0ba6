/**
 * SIGKILL at random moments while asynchronous requests are sent, delivered and called back: what was acknowledged is
 * delivered and called back, nothing is delivered twice at a time, and every request is counted once.
 */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { unlock } from "../../src/auth/secret-key.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { openStore } from "../../src/store/store.ts";
import { type TestPlace, testDatabases } from "../databases.ts";
import { LONG } from "../long.ts";
import { caller, TEST_KEY } from "../platform.ts";
import { AGENT_IMAGE, type AgentWorld, agentWorld, until } from "./agent-world.ts";

const databases = await testDatabases();
after(() => databases.stop());
const ROUNDS = LONG ? 30 : 1;
const SEED = Number(process.env.BERTH_TEST_SEED ?? 20_261_115);
const SENDERS = 4;
const PAUSE_MS = 15;
/** More than is delivered at once (128), far below what may wait in a workspace (10,000; beyond that 429 is right). */
const OWED_MAX = 200;

type Place = TestPlace;

for (const database of databases.all) {
  describe(`killed while delivering, on ${database.name}`, { skip: database.skip }, () => {
    test(`${ROUNDS} rounds, seed ${SEED}`, async (t) => {
      const place = await database.migrated();
      await using world = await agentWorld();
      const random = randomFrom(SEED);
      const acknowledged = new Set<string>();
      const refused: number[] = [];
      const calledBack = callbacksOf(world);
      let server = await startServer(place, world);
      t.after(() => server.child.kill("SIGKILL"));
      await makeAgent(server.url, world);
      for (let round = 0; round < ROUNDS; round += 1) {
        const before = world.requests.length;
        const senders = Array.from({ length: SENDERS }, (_, n) =>
          sendUntilDeath(server, `${round}-${n}`, { acknowledged, refused, calledBack }),
        );
        // The kill is to fall into deliveries, not into the start of the agent.
        await until("some are delivered", () => world.requests.length > before + SENDERS);
        await delay(random() * 300);
        server.child.kill("SIGKILL");
        await Promise.all(senders);
        server = await startServer(place, world);
      }
      const delivered = (): Set<string> => new Set(world.requests.map(({ body }) => body));
      const owed = (): number => sawAll(acknowledged).difference(calledBack()).size;
      for (let left = owed(); left > 0; left = owed())
        await until(`fewer than ${left} wait to be called back`, () => owed() < left);
      assert.deepEqual(refused, []);
      assert.deepEqual([...acknowledged.difference(delivered())], []);
      assert.deepEqual(world.doubled, []);
      await compareCounts(place, async () => {
        server.child.kill("SIGTERM");
        await once(server.child, "exit");
        return delivered().size;
      });
      place.remove();
    });
  });
}

const sawAll = (ids: Set<string>): Set<string> => new Set([...ids].map((id) => `seen ${id}`));

/** What was called back so far; each callback is read once. */
function callbacksOf({ callbacks }: AgentWorld): () => Set<string> {
  const seen = new Set<string>();
  let read = 0;
  return () => {
    for (; read < callbacks.length; read += 1) seen.add(JSON.parse(callbacks[read]?.body ?? "").response_body);
    return seen;
  };
}

/** Whatever was delivered had been kept, and is on the bill once; so is what was kept though nobody was told so. */
async function compareCounts(place: Place, stop: () => Promise<number>): Promise<void> {
  const store = await openStore({
    ...place,
    unlock: unlock({ data: place.dataDir }),
    clock: systemClock,
    onError: assert.ifError,
  });
  try {
    const { read } = store.database;
    const left = () => read.selectFrom("deliveries").select("id").where("phase", "=", "request").execute();
    await until("nothing waits", async () => (await left()).length === 0);
    const delivered = await stop();
    const counted = await read
      .selectFrom("usage_events as e")
      .innerJoin("usage_series as s", "s.id", "e.series_id")
      .select((eb) => eb.fn.sum<number>("e.quantity").as("n"))
      .where("s.dimension", "=", "agent_async_requests_count")
      .where("s.named", "=", 1)
      .executeTakeFirst();
    assert.equal(Number(counted?.n), delivered);
  } finally {
    await store.close();
  }
}

interface Server {
  child: ChildProcess;
  url: string;
}

async function startServer(place: Place, world: AgentWorld): Promise<Server> {
  const script = join(import.meta.dirname, "server-child.ts");
  const child = spawn(process.execPath, [script, place.dataDir, place.databaseUrl ?? "", String(world.agentPort)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, TMPDIR: place.dataDir },
  });
  for await (const text of child.stdout) {
    const url = /^url (\S+)/m.exec(String(text))?.[1];
    if (url) return { child, url };
  }
  throw new Error("the server ended before it listened");
}

async function makeAgent(url: string, { callbackUrl }: AgentWorld): Promise<void> {
  const triggers = [{ id: "t", type: "http-async", configuration: { callbackUrl } }];
  const spec = { runtime: { image: AGENT_IMAGE, memory: 128 }, triggers };
  const { status, body } = await caller(url)("POST", "/agents", { body: { metadata: { name: "a" }, spec } });
  assert.equal(status, 200, JSON.stringify(body));
}

interface Answers {
  acknowledged: Set<string>;
  /** Statuses other than 200. */
  refused: number[];
  calledBack(): Set<string>;
}

/** Does not fail: the test would not wait for a sender that ended before the server. */
async function sendUntilDeath({ child, url }: Server, prefix: string, answers: Answers): Promise<void> {
  const { acknowledged, refused, calledBack } = answers;
  for (let n = 0; ; n += 1) {
    while (acknowledged.size - calledBack().size > OWED_MAX && child.signalCode === null) await delay(PAUSE_MS);
    const id = `${prefix}-${n}`;
    const answer = await fetch(`${url}/main/agents/a?async=true`, {
      method: "POST",
      headers: { authorization: `Bearer ${TEST_KEY}` },
      body: id,
    }).catch(() => null);
    if (!answer) return;
    if (answer.status === 200) acknowledged.add(id);
    else refused.push(answer.status);
    await delay(PAUSE_MS);
  }
}

/** The same numbers for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
