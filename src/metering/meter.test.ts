import assert from "node:assert/strict";
import { test } from "node:test";
import { LONG } from "../../test/long.ts";
import { MemoryLedger } from "../../test/metering/memory-ledger.ts";
import { meteredOnce } from "../../test/metering/meter-property.ts";
import { DIMENSION, MeterWorld } from "../../test/metering/meter-world.ts";
import { HOUR_MS, MINUTE_MS } from "../lib/time/clock.ts";

const START_MS = Date.parse("2026-02-28T23:58:00Z");

test("a rate is used until it changes, live to the last flush, and split at full hours", async () => {
  const ledger = new MemoryLedger();
  const world = new MeterWorld(ledger, START_MS);
  await world.change(0, 4096);
  world.pass(3 * MINUTE_MS);
  assert.equal((await world.metered()).get(`uuid-0 ${DIMENSION}`), BigInt(4096 * 3 * MINUTE_MS));
  world.pass(10_000);
  await world.change(0, 512);
  world.pass(10_000);
  await world.change(0, 0);
  world.pass(HOUR_MS);
  assert.equal((await world.metered()).get(`uuid-0 ${DIMENSION}`), BigInt(4096 * 190_000 + 512 * 10_000));
  assert.deepEqual(
    [...ledger.events.values()].map(({ startMs, endMs }) => [startMs - START_MS, endMs - START_MS]),
    [
      [0, 120_000],
      [120_000, 190_000],
      [190_000, 200_000],
    ],
  );
  assert.equal(ledger.spans.size, 0);
});

test("a long pause of the server is used time, a sleeping machine is not", async () => {
  const world = new MeterWorld(new MemoryLedger(), START_MS);
  await world.change(0, 100);
  world.pass(5 * HOUR_MS); // the process was stopped, by a debugger say, while the workload ran on
  assert.equal((await world.metered()).get(`uuid-0 ${DIMENSION}`), BigInt(100 * 5 * HOUR_MS));
  world.setClock(8 * HOUR_MS); // the machine slept: only the wall clock advanced
  assert.equal((await world.metered()).get(`uuid-0 ${DIMENSION}`), BigInt(100 * 5 * HOUR_MS));
});

test("a clock that is set back over a full hour loses nothing and repeats nothing", async () => {
  const world = new MeterWorld(new MemoryLedger(), START_MS);
  await world.change(0, 100);
  for (let round = 0; round < 5; round += 1) {
    world.pass(4 * MINUTE_MS);
    await world.flush();
    world.setClock(-3 * MINUTE_MS);
    await world.flush();
  }
  assert.equal((await world.metered()).get(`uuid-0 ${DIMENSION}`), BigInt(100 * 20 * MINUTE_MS));
});

test("what ran when the server died and is not seen again counts up to the last flush", async () => {
  const ledger = new MemoryLedger();
  const world = new MeterWorld(ledger, START_MS);
  await world.change(0, 100);
  world.pass(20_000);
  await world.flush();
  const next = new MeterWorld(ledger, START_MS + 24_000); // the same ledger, but nothing runs any more
  assert.equal((await next.metered()).get(`uuid-0 ${DIMENSION}`), BigInt(100 * 20_000));
});

test("what a node held when it went silent is settled by the next one that runs the resource", async () => {
  const ledger = new MemoryLedger();
  const gone = new MeterWorld(ledger, START_MS, { node: "node-a" });
  await gone.change(0, 100);
  gone.pass(20_000);
  await gone.flush();
  const next = new MeterWorld(ledger, START_MS + 5 * MINUTE_MS, { node: "node-b" });
  await next.change(0, 100);
  next.pass(1000);
  assert.equal((await next.metered()).get(`uuid-0 ${DIMENSION}`), BigInt(100 * 21_000));
  assert.deepEqual(
    [...ledger.spans.values()].map(({ node }) => node),
    ["node-b"],
  );
});

test("two nodes that run copies of one resource both count", async () => {
  const ledger = new MemoryLedger();
  const worlds = ["node-a", "node-b"].map((node) => new MeterWorld(ledger, START_MS, { node }));
  for (const world of worlds) await world.change(0, 100);
  for (const world of worlds) {
    world.pass(10_000);
    await world.flush();
  }
  assert.equal((await worlds[0]?.metered())?.get(`uuid-0 ${DIMENSION}`), BigInt(2 * 100 * 10_000));
});

const runs = LONG ? 20_000 : 500;
const freshLedger = async () => new MemoryLedger();

test("whenever the server dies, everything is metered exactly once", () =>
  meteredOnce({ freshLedger, trouble: "death", runs }));

test("whatever the clock does, what is metered is the time that really passed", () =>
  meteredOnce({ freshLedger, trouble: "clock setting", runs }));

test("a database that fails before or after a write changes nothing in the end", () =>
  meteredOnce({ freshLedger, trouble: "refusal", runs }));
