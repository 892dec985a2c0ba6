/** The endpoint against its model, on whatever ledger it is given. */
import assert from "node:assert/strict";
import { createCursorCodec } from "../../src/contract/cursor.ts";
import { PlatformError } from "../../src/contract/errors.ts";
import { type AccountMetrics, accountMetrics, resourceTypesOf } from "../../src/metering/account-metrics.ts";
import { parseMetricsQuery } from "../../src/metering/metrics-query.ts";
import { COST_DECIMALS, costToUsd, rateOf } from "../../src/metering/price-book.ts";
import type { RateOf, UsageEvent, UsageLedger } from "../../src/store/usage/port.ts";
import { splitAtHours } from "../../src/store/usage/rollup.ts";
import fc from "../properties.ts";
import { askModel, type ModelAnswer, type ModelEvent } from "./metrics-model.ts";
import { type AnyQuery, anyEvent, anyQuery, anyRunning, book, cutWindow } from "./usage-arbitraries.ts";

const cursors = createCursorCodec(Buffer.alloc(32, 7));
/** After everything that is generated, so that no walk through the pages cuts a window short. */
const clock = { now: () => Date.parse("2028-01-01T00:00:00Z") };
const PAGES_MAX = 500;

export interface ModelPropertyOptions {
  freshLedger(): Promise<UsageLedger>;
  runs: number;
  /** The prices that are in force while usage is recorded; the model always answers at those of `book`. */
  recordAt?: RateOf;
  /** Something that happens to the ledger before it is asked. */
  afterFilling?(events: readonly ModelEvent[]): Promise<void>;
}

export async function endpointEqualsModel(options: ModelPropertyOptions): Promise<void> {
  const { freshLedger, runs, recordAt = rateOf(book), afterFilling } = options;
  const property = fc.asyncProperty(
    fc.array(anyEvent, { maxLength: 60 }),
    fc.array(anyRunning, { maxLength: 5 }),
    fc.array(anyQuery, { minLength: 1, maxLength: 8 }),
    async (events, running, queries) => {
      const ledger = await freshLedger();
      const known = await fill(ledger, events, running, recordAt);
      await afterFilling?.(known);
      for (const query of queries) await compare(ledger, known, cutWindow(query, known));
    },
  );
  await fc.assert(property, { numRuns: runs });
}

type AnyRunning = typeof anyRunning extends fc.Arbitrary<infer T> ? T : never;

/** Records everything, part of it twice, and returns what the ledger must know afterwards. */
async function fill(
  ledger: UsageLedger,
  events: UsageEvent[],
  running: AnyRunning[],
  rate: RateOf,
): Promise<ModelEvent[]> {
  const whole = new Map<string, ModelEvent>();

  for (let index = 0; index < events.length; index += 7) {
    const chunk = events.slice(index, index + 7).flatMap(splitAtHours);
    await ledger.record({ events: chunk }, rate);
    for (const event of chunk) {
      const id = JSON.stringify([event.series, event.startMs, event.key]);
      // The first of its kind stays; another event under the same identity is the same event.
      if (!whole.has(id)) whole.set(id, event);
    }
  }
  await ledger.record({ events: events.slice(0, 10).flatMap(splitAtHours) }, rate);
  for (const [index, { span, coveredMs }] of running.entries()) {
    const node = `node-${index}`;
    await ledger.record({ open: [{ node, span }], covered: { node, untilMs: coveredMs, era: 0 } }, rate);
    if (coveredMs > span.startMs) {
      whole.set(JSON.stringify(["running", index]), {
        series: span.series,
        startMs: span.startMs,
        endMs: coveredMs,
        quantity: span.ratePerMs * (coveredMs - span.startMs),
        key: span.key,
        running: index,
      });
    }
  }
  return [...whole.values()];
}

async function compare(ledger: UsageLedger, known: ModelEvent[], query: AnyQuery): Promise<void> {
  const pages = await walk(ledger, query);
  if (pages === null) return;
  const [first] = pages;
  assert.ok(first);
  const resolution = first.resolution as "hourly";
  const model = askModel(known, { ...query, resolution }, book);
  const entries = pages.flatMap(({ data }) => data);
  const usage = query.groupBy.includes("billing_dimension");
  assert.deepEqual(entries.map(costsOnly), expectedCosts(model), "costs, groups, order and buckets");
  assert.equal(entries.length === 0 || usage === (entries[0]?.summary.usage !== undefined), true);
  if (usage) assertUsage(entries, model);
  for (const page of pages) {
    assert.equal(page.summary.totalCost, costToUsd(model.totalCost));
    assert.equal(page.summary.totalUsage !== undefined, usage);
    if (usage) assertClose(page.summary.totalUsage ?? Number.NaN, model.totalUsage);
  }
  assertConserved(entries, first.summary.totalCost);
  const window = { startMs: query.startMs, endMs: query.endMs, startTime: "", endTime: "" };
  const types = new Set(
    askModel(known, { ...query, filter: {}, resolution, groupBy: ["resource_type"] }, book).entries.map(
      ({ fields }) => fields.resourceType,
    ),
  );
  assert.deepEqual(
    await resourceTypesOf({ ledger, book }, { accountId: query.accountId, workspaces: "all" }, window),
    [...types].sort(),
  );
}

/** All pages of a query; null when it is rightly refused for its resolution. */
async function walk(ledger: UsageLedger, query: AnyQuery): Promise<AccountMetrics[] | null> {
  const { dimension, ...filter } = query.filter;
  const parameters: Record<string, string> = {
    startTime: new Date(query.startMs).toISOString(),
    endTime: new Date(query.endMs).toISOString(),
    limit: String(query.limit),
    ...filter,
    ...(dimension ? { billingDimension: dimension } : {}),
    ...(query.resolution ? { resolution: query.resolution } : {}),
    ...(query.groupBy.length > 0 ? { groupBy: query.groupBy.join(",") } : {}),
  };
  const pages: AccountMetrics[] = [];
  for (let cursor = ""; pages.length < PAGES_MAX; ) {
    let parsed: ReturnType<typeof parseMetricsQuery>;
    try {
      parsed = parseMetricsQuery({ ...parameters, cursor });
    } catch (error) {
      assert.ok(error instanceof PlatformError && error.body?.parameter === "resolution");
      return null;
    }
    const page = await accountMetrics(
      { ledger, book, cursors, clock },
      { accountId: query.accountId, workspaces: "all" },
      parsed,
    );
    assert.ok(page.data.length <= Math.min(query.limit, 100));
    assert.equal(page.meta.hasMore, page.meta.nextCursor !== "");
    pages.push(page);
    if (!page.meta.hasMore) return pages;
    cursor = page.meta.nextCursor;
  }
  throw new Error("the pages do not end");
}

type Entry = AccountMetrics["data"][number];

function costsOnly({ summary, timeseries, ...fields }: Entry): unknown {
  return { fields, cost: summary.cost, buckets: timeseries.map(({ timestamp, cost }) => [timestamp, cost]) };
}

const expectedCosts = ({ entries }: ModelAnswer): unknown[] =>
  entries.map(({ fields, cost, buckets }) => ({
    fields,
    cost: costToUsd(cost),
    buckets: buckets.map((bucket) => [bucket.timestamp, costToUsd(bucket.cost)]),
  }));

function assertUsage(entries: Entry[], model: ModelAnswer): void {
  for (const [index, entry] of entries.entries()) {
    const expected = model.entries[index];
    assertClose(entry.summary.usage ?? Number.NaN, expected?.usage ?? Number.NaN);
    for (const [place, item] of entry.timeseries.entries()) {
      assertClose(item.usage ?? Number.NaN, expected?.buckets[place]?.usage ?? Number.NaN);
    }
  }
}

/** Sum of buckets = group, sum of groups = total, in whole units of the smallest decimal. */
function assertConserved(entries: Entry[], totalCost: number): void {
  // A double holds ten decimals up to here; beyond, the comparison with the model's own doubles has to do.
  if (totalCost > 99_999) return;
  const whole = (usd: number): bigint => BigInt(Math.round(usd * 10 ** COST_DECIMALS));
  let sum = 0n;
  for (const { summary, timeseries } of entries) {
    const buckets = timeseries.reduce((total, { cost }) => total + whole(cost), 0n);
    assert.equal(buckets, whole(summary.cost));
    sum += buckets;
  }
  assert.equal(sum, whole(totalCost));
}

function assertClose(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) <= 1e-9 * Math.max(1, Math.abs(expected)), `${actual} is not ${expected}`);
}
