import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { testDatabases } from "../../../test/databases.ts";
import { openTestStore } from "../../../test/store.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../lib/time/clock.ts";
import { binOf, percentileOf } from "./minute.ts";
import { type RunningInstance, startResourceMetrics } from "./recorder.ts";
import { seriesOf } from "./series.ts";
import { readHours } from "./stored-hours.ts";

const databases = await testDatabases();
after(() => databases.stop());
const START_MS = Date.parse("2026-05-04T10:00:00Z");

for (const database of databases.all)
  describe(`metrics of resources on ${database.name}`, { skip: database.skip }, () => {
    test("use adds up over instances and nodes, and what is older than a day is gone", async () => {
      const place = await database.migrated();
      let nowMs = START_MS;
      const store = await openTestStore(place, { clock: { now: () => nowMs } });
      try {
        const machines: Record<string, RunningInstance[]> = { one: [], two: [] };
        const start = (node: string) =>
          startResourceMetrics({
            ...{ records: store.records, node, clock: { now: () => nowMs }, monotonicMs: () => nowMs },
            running: async () => machines[node] ?? [],
            onError: (error) => assert.fail(String(error)),
          });
        const [one, two] = [start("one"), start("two")];
        const instance = (uid: string, cpuMs: number): RunningInstance => ({
          ...{ uid, owner: "agent", cpuMs, memoryBytes: 100 },
          // The machine of the second instance cannot tell.
          ...(uid === "b" ? {} : { diskBytes: 1000 }),
        });
        machines.one = [instance("a", 5000), instance("b", 0)];
        machines.two = [instance("c", 0)];
        await Promise.all([one.look(), two.look()]);
        nowMs += 10_000;
        // Half a processor and a quarter of one on the first node, a whole one on the second.
        machines.one = [instance("a", 10_000), instance("b", 2500)];
        machines.two = [instance("c", 10_000)];
        for (let count = 0; count < 100; count += 1)
          one.ended("agent", { durationMs: count < 90 ? 10 : 1000, isError: count === 0, isCold: count < 2 });
        await Promise.all([one.look(), two.look()]);
        const range = { fromMs: START_MS, toMs: START_MS + 2 * MINUTE_MS, stepMs: MINUTE_MS };
        const [first, second] = seriesOf(await readHours(store.records, "agent"), range);
        assert.deepEqual(
          { ...first, p95Ms: null },
          {
            ...{ time: "2026-05-04T10:00:00.000Z", cpus: 1.75, memoryBytes: 300, diskBytes: 2000 },
            ...{ requests: 100, errors: 1, p95Ms: null, coldStarts: 2 },
          },
        );
        assert.ok(Math.abs((first?.p95Ms ?? 0) - 1000) < 90);
        assert.deepEqual([second?.cpus, second?.memoryBytes, second?.requests, second?.p95Ms], [null, null, 0, null]);
        assert.equal(second?.diskBytes, null);
        // An instance that starts again counts from zero; a restarted server does not count what it has not seen.
        nowMs += MINUTE_MS;
        machines.one = [instance("a", 6000)];
        await one.look();
        const again = start("one");
        await again.look();
        const [, later] = seriesOf(await readHours(store.records, "agent"), range);
        assert.equal(later?.cpus, 0.1);
        await Promise.all([one.stop(), two.stop(), again.stop()]);
        nowMs += DAY_MS + HOUR_MS;
        assert.deepEqual(await readHours(store.records, "agent"), []);
        await store.records.forgetExpired();
      } finally {
        await store.close();
        place.remove();
      }
    });
  });

test("a percentile is off by at most 9 %, from under a millisecond to hours", () => {
  for (const durationMs of [1, 3, 17, 250, 4000, 61_000, 3_600_000]) {
    const found = percentileOf({ [binOf(durationMs)]: 7 }, 0.95) ?? 0;
    assert.ok(Math.abs(found / durationMs - 1) <= 0.1, `${durationMs} became ${found}`);
  }
  assert.equal(percentileOf({ [binOf(0.01)]: 1 }, 0.95), 0.5);
  assert.equal(percentileOf({}, 0.95), null);
});
