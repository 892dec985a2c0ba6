import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryLedger } from "../../test/metering/memory-ledger.ts";
import { ACCOUNTS, book } from "../../test/metering/usage-arbitraries.ts";
import { createCursorCodec } from "../contract/cursor.ts";
import { SECOND_MS } from "../lib/time/clock.ts";
import { modelUsage } from "./model-usage.ts";
import { rateOf } from "./price-book.ts";

test("pages have every model once, whatever is used between them, and tell the same window", async () => {
  const ledger = new MemoryLedger();
  const cursors = createCursorCodec(Buffer.alloc(32, 7));
  let nowMs = Date.parse("2026-05-04T10:20:00Z");
  const use = (model: string, quantity: number) => {
    const series = {
      accountId: ACCOUNTS[0],
      workspace: "main",
      resourceType: "model",
      resourceName: model,
      resourceUuid: model,
      dimension: "model_provider_cost_usd",
    };
    return ledger.record(
      { events: [{ series, startMs: nowMs, endMs: nowMs, quantity, key: `${nowMs}` }] },
      rateOf(book),
    );
  };
  const models = ["a", "b", "c", "d", "e"];
  for (const [index, model] of models.entries()) await use(model, 100 - index);
  for (const endTime of [undefined, "2026-05-05T00:00:00Z"]) {
    const windows = new Set<string>();
    const seen: (string | undefined)[] = [];
    let cursor: string | undefined;
    do {
      nowMs += SECOND_MS;
      const query = { groupBy: "model", limit: 2, cursor, endTime };
      const deps = { ledger, book, cursors, clock: { now: () => nowMs } };
      const page = await modelUsage(deps, { accountId: ACCOUNTS[0], name: "main" }, query);
      windows.add(`${page.startTime} ${page.endTime} ${page.summary.cost}`);
      seen.push(...page.data.map(({ model }) => model));
      cursor = page.meta.nextCursor || undefined;
      nowMs += SECOND_MS;
      await use("e", 1_000_000);
    } while (cursor !== undefined);
    assert.deepEqual(seen.toSorted(), models);
    assert.equal(windows.size, 1);
  }
});
