/** A walk through the pages of a window that is still running: every group once, however much is used meanwhile. */
import assert from "node:assert/strict";
import { createCursorCodec } from "../../src/contract/cursor.ts";
import { accountMetrics } from "../../src/metering/account-metrics.ts";
import { parseMetricsQuery } from "../../src/metering/metrics-query.ts";
import { rateOf } from "../../src/metering/price-book.ts";
import type { UsageLedger, UsageSeries } from "../../src/store/usage/port.ts";
import { ACCOUNTS, book } from "./usage-arbitraries.ts";

const START_MS = Date.parse("2026-05-04T10:00:00Z");
const QUERY = { startTime: "2026-05-04T00:00:00Z", endTime: "2026-05-05T00:00:00Z", groupBy: "resource_name" };
const RESOURCES = 30;
const PAGE = 7;
/** A server that is gone has spans that nobody closed; the others are not held back by it. */
const GONE = { node: "gone", untilMs: START_MS + 2000, era: 0 };

export async function pagesOfARunningWindow(ledger: UsageLedger): Promise<void> {
  const cursors = createCursorCodec(Buffer.alloc(32, 7));
  const dimension = "sandbox_compute_runtime_gbs";
  const spanOf = (index: number) => ({
    series: {
      accountId: ACCOUNTS[0],
      workspace: "default",
      resourceType: "sandbox",
      resourceName: `box-${index}`,
      resourceUuid: `uuid-${index}`,
      dimension,
    } satisfies UsageSeries,
    startMs: START_MS + index,
    ratePerMs: 4096,
    key: "span",
    price: rateOf(book)(dimension, Math.floor(START_MS / 3_600_000)),
  });
  // All alike, on two servers that vouch at different times: the cost of each passes that of the next within seconds.
  const nodeOf = (index: number) => (index === 0 ? GONE.node : index % 2 === 0 ? "even" : "odd");
  const open = Array.from({ length: RESOURCES }, (_, index) => ({ node: nodeOf(index), span: spanOf(index) }));
  await ledger.record({ open, covered: GONE }, rateOf(book));
  const vouch = async (nowMs: number) => {
    await ledger.record({ covered: { node: "even", untilMs: nowMs - 100, era: 0 } }, rateOf(book));
    await ledger.record({ covered: { node: "odd", untilMs: nowMs - 4900, era: 0 } }, rateOf(book));
  };

  const names: string[] = [];
  const totals = new Set<number>();
  let nowMs = START_MS + 60_000;
  for (let cursor = ""; ; nowMs += 5000) {
    await vouch(nowMs);
    const query = parseMetricsQuery({ ...QUERY, limit: String(PAGE), cursor });
    const page = await accountMetrics(
      { ledger, book, cursors, clock: { now: () => nowMs } },
      { accountId: ACCOUNTS[0], workspaces: "all" },
      query,
    );
    names.push(...page.data.map(({ resourceName }) => resourceName ?? ""));
    totals.add(page.summary.totalCost);
    cursor = page.meta.nextCursor;
    if (!page.meta.hasMore) break;
  }
  assert.deepEqual(names.toSorted(), open.map(({ span }) => span.series.resourceName).toSorted());
  assert.equal(totals.size, 1, "every page tells the same total");
}
