import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { sql } from "kysely";
import { type TestDatabase, type TestPlace, testDatabases } from "../../../test/databases.ts";
import { LONG } from "../../../test/long.ts";
import { meteredOnce } from "../../../test/metering/meter-property.ts";
import { endpointEqualsModel } from "../../../test/metering/model-property.ts";
import { pagesOfARunningWindow } from "../../../test/metering/running-pages.ts";
import { ACCOUNTS, anyEvent, book } from "../../../test/metering/usage-arbitraries.ts";
import fc from "../../../test/properties.ts";
import { openTestStore } from "../../../test/store.ts";
import { HOUR_MS } from "../../lib/time/clock.ts";
import { hourMs, hourOf, monthStart } from "../../lib/time/utc-calendar.ts";
import type { Store } from "../store.ts";
import type { RateOf, UsageEvent, UsageEventPlace, UsageQuestion } from "./port.ts";
import { splitAtHours } from "./rollup.ts";

const databases = await testDatabases();
after(() => databases.stop());

const DIMENSION = "sandbox_compute_runtime_gbs";
const series = {
  accountId: ACCOUNTS[0],
  workspace: "default",
  resourceType: "sandbox",
  resourceName: "s",
  resourceUuid: "u",
  dimension: DIMENSION,
};
const HOUR = hourOf(Date.parse("2026-03-31T22:00:00Z"));
/** Price: three units of cost for two of quantity. */
const rateOf: RateOf = () => ({ numerator: 3n, denominator: 2n });

for (const database of databases.all)
  describe(`usage on ${database.name}`, { skip: database.skip }, () => suite(database));

function suite(database: TestDatabase): void {
  let store: Store;
  let place: TestPlace;
  before(async () => {
    place = await database.migrated();
    store = await openTestStore(place);
  });
  after(async () => {
    await store.close();
    place.remove();
  });

  /** Empties the ledger; series keep their numbers, as in production. */
  const freshLedger = async () => {
    await store.write(async ({ queries }) => {
      for (const table of [
        "usage_events",
        "usage_rollups",
        "usage_spans",
        "usage_metered",
        "usage_meters",
        "usage_retention",
      ])
        await sql`DELETE FROM ${sql.table(table)}`.execute(queries);
    });
    return store.usage;
  };
  const rollups = async () =>
    (await sql`SELECT * FROM usage_rollups ORDER BY account, level, bucket, series_id`.execute(store.database.read))
      .rows;

  test("the endpoint equals plain loops over raw events", () =>
    endpointEqualsModel({ freshLedger, runs: LONG ? 1000 : 15 }));

  test("pages of a window that is still running have every group once", async () =>
    pagesOfARunningWindow(await freshLedger()));

  for (const trouble of ["death", "refusal", "clock setting"] as const)
    test(`everything is metered once in spite of: ${trouble}`, () =>
      meteredOnce({ freshLedger, trouble, runs: LONG ? 300 : 5 }));

  test("sums made anew are the same sums, and at other prices those of the other book", () => {
    const otherPrices: RateOf = (_dimension, hour) => ({ numerator: BigInt(hour % 7), denominator: 100n });
    const rebuild = async (events: readonly UsageEvent[], prices: RateOf) => {
      const months = new Set(events.map(({ startMs }) => monthStart(hourOf(startMs))));
      const dimensions = [...new Set(events.map((event) => event.series.dimension))];
      for (const month of months)
        for (const account of ACCOUNTS)
          await store.usage.rebuild(account, hourMs(month), hourMs(month) + 1, { rateOf: prices, dimensions });
    };
    return endpointEqualsModel({
      freshLedger,
      runs: LONG ? 100 : 3,
      recordAt: otherPrices,
      afterFilling: async (events) => {
        const before = await rollups();
        await rebuild(events, otherPrices);
        assert.deepEqual(await rollups(), before, "at the prices they were booked at nothing changes");
        await store.write(({ queries }) => sql`UPDATE usage_rollups SET quantity = 1 WHERE level > 1`.execute(queries));
        await rebuild(events, bookRates);
      },
    });
  });

  test("writers at the same time, of the same events and of others, in one hour of one resource", async () => {
    const ledger = await freshLedger();
    const batches = Array.from({ length: 30 }, (_, n) =>
      Array.from({ length: 10 }, (_, k) => momentEvent(`key-${(n % 15) * 10 + k}`, 1)),
    );
    await Promise.all(batches.map((events) => ledger.record({ events }, rateOf)));
    const { groups, totals } = await ledger.ask(wholeQuestion({}));
    assert.deepEqual(groups, [{ key: {}, cost: 225n, quantity: 150n }], "150 different ones, priced as a whole");
    assert.deepEqual(totals, [{ dimension: DIMENSION, cost: 225n, quantity: 150n }]);
  });

  test("a resource keeps its numbers when its first commit fails", async () => {
    const ledger = await freshLedger();
    const fresh = { ...series, resourceName: `never-seen-${Date.now()}` };
    const events = [{ ...momentEvent("a", 4), series: fresh }];
    await assert.rejects(ledger.record({ events: [...events, { ...momentEvent("b", 0), quantity: 0.5 }] }, rateOf));
    await ledger.record({ events }, rateOf);
    const { groups } = await ledger.ask(wholeQuestion({ filter: { resourceName: fresh.resourceName } }));
    assert.deepEqual(groups, [{ key: {}, cost: 6n, quantity: 4n }]);
  });

  test("events that are read out are those that were recorded, in the order of time", async () => {
    const ledger = await freshLedger();
    const events = fc.sample(anyEvent, { numRuns: 2500, seed: 7 }).flatMap(splitAtHours);
    const idOf = ({ series: s, startMs, key }: UsageEvent) =>
      JSON.stringify([s.workspace, s.resourceName, s.resourceUuid, s.dimension, s.subject, startMs, key]);
    const endMs = Date.parse("2025-01-01T00:00:00Z");
    const wanted = new Map<string, UsageEvent>();
    for (const event of events.toReversed())
      if (event.series.accountId === ACCOUNTS[0] && event.startMs < endMs) wanted.set(idOf(event), event);
    for (let at = 0; at < events.length; at += 500) await ledger.record({ events: events.slice(at, at + 500) }, rateOf);
    const got: UsageEvent[] = [];
    for (let after: UsageEventPlace | null = null; ; ) {
      const page = await store.usage.events(ACCOUNTS[0], { startMs: 0, endMs }, { limit: 100, after });
      got.push(...page.map(({ event }) => event));
      after = page.at(-1)?.place ?? null;
      if (!after) break;
    }
    assert.equal(got.length, wanted.size);
    for (const event of got) assert.deepEqual(event, wanted.get(idOf(event)));
    const times = got.map(({ startMs }) => startMs);
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    );
  });

  test("when old events are removed their sums stay, and a cut hour is shared out evenly", async () => {
    const ledger = await freshLedger();
    const startMs = hourMs(HOUR);
    const old = { series, startMs: startMs + 10 * 60_000, endMs: startMs + 20 * 60_000, quantity: 600_001, key: "k" };
    const recent = { ...old, startMs: old.startMs + 48 * HOUR_MS, endMs: old.endMs + 48 * HOUR_MS };
    await ledger.record({ events: [old, recent] }, rateOf);
    const half = (fromMs: number) => ledger.ask(cutQuestion(fromMs, fromMs + HOUR_MS / 2));
    assert.equal((await half(startMs)).groups[0]?.quantity, 600_001n, "all of it in the first half");
    assert.equal(await store.usage.prune(startMs + 30 * HOUR_MS), 1);
    assert.equal(await store.usage.prune(startMs + 30 * HOUR_MS), 0);
    assert.equal((await half(startMs)).groups[0]?.quantity, 300_000n);
    assert.equal((await half(startMs + HOUR_MS / 2)).groups[0]?.quantity, 300_001n);
    assert.equal((await half(recent.startMs)).groups[0]?.quantity, 600_001n, "later events are still there");
    const before = await rollups();
    const prices = { rateOf, dimensions: [DIMENSION] };
    await store.usage.rebuild(ACCOUNTS[0], startMs, startMs + 72 * HOUR_MS, prices);
    assert.deepEqual(await rollups(), before, "hours without events are summed from themselves");
  });

  test("the same usage can be priced by another book without touching what is booked", async () => {
    const ledger = await freshLedger();
    await ledger.record({ events: [momentEvent("a", 10), momentEvent("b", 1)] }, rateOf);
    const before = await rollups();
    const prices = { dimensions: [DIMENSION], rateOf: () => ({ numerator: 1n, denominator: 2n }) };
    assert.deepEqual(await store.usage.reprice(ACCOUNTS[0], hourMs(HOUR - 5), hourMs(HOUR + 5), prices), [
      { dimension: DIMENSION, quantity: 11n, cost: 17n, repriced: 6n },
    ]);
    assert.deepEqual(await rollups(), before);
  });

  test("a view of some workspaces leaves nothing of the others", async () => {
    const ledger = await freshLedger();
    const elsewhere = { ...momentEvent("b", 5), series: { ...series, workspace: "elsewhere", resourceType: "other" } };
    await ledger.record({ events: [momentEvent("a", 10), elsewhere] }, rateOf);
    for (const question of [wholeQuestion({}), cutQuestion(hourMs(HOUR), hourMs(HOUR) + HOUR_MS / 2)]) {
      const seen = async (workspaces: UsageQuestion["workspaces"]) => {
        const view = { ...question, workspaces };
        const { groups, totals } = await ledger.ask({ ...view, columns: ["workspace"] });
        assert.equal(
          groups.reduce((sum, { cost }) => sum + cost, 0n),
          totals.reduce((sum, { cost }) => sum + cost, 0n),
        );
        const types = await store.usage.resourceTypes(view, question.totalParts);
        return [groups.map(({ key }) => key.workspace).sort(), types.sort()];
      };
      assert.deepEqual(await seen("all"), [
        ["elsewhere", series.workspace].sort(),
        ["other", series.resourceType].sort(),
      ]);
      assert.deepEqual(await seen(["elsewhere"]), [["elsewhere"], ["other"]]);
      assert.deepEqual(await seen([]), [[], []]);
    }
  });

  test("an account that has used nothing has an empty ledger", async () => {
    const question = wholeQuestion({ accountId: "nobody" });
    assert.deepEqual(await store.usage.ask(question), { groups: [], totals: [], cells: [] });
    assert.deepEqual(await store.usage.resourceTypes(question, question.totalParts), []);
    assert.equal(await store.usage.meterState("no-such-node"), null);
  });
}

const bookRates: RateOf = (dimension, hour) => book.rate(dimension as typeof DIMENSION, hour);

const momentEvent = (key: string, quantity: number): UsageEvent => ({
  series,
  startMs: hourMs(HOUR) + 5,
  endMs: hourMs(HOUR) + 5,
  quantity,
  key,
});

const wholeQuestion = (more: Partial<UsageQuestion>): UsageQuestion => ({
  accountId: ACCOUNTS[0],
  workspaces: "all",
  filter: {},
  columns: [],
  startMs: hourMs(HOUR - 1),
  endMs: hourMs(HOUR + 1),
  totalParts: [{ from: "rollup", grain: "hour", startHour: HOUR - 1, endHour: HOUR + 1 }],
  bucketParts: [],
  bucketHours: 1,
  bucketShiftHours: 0,
  limit: 10,
  after: null,
  rateOf,
  dimensions: [DIMENSION],
  ...more,
});

const cutQuestion = (startMs: number, endMs: number): UsageQuestion =>
  wholeQuestion({ startMs, endMs, totalParts: [{ from: "events", hour: hourOf(startMs), startMs, endMs }] });
