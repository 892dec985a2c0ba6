import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../../test/properties.ts";
import { DAY_MS, HOUR_MS } from "../../lib/time/clock.ts";
import { hourOf } from "../../lib/time/utc-calendar.ts";
import { isWithinHour, quantityWithin, splitAtHours } from "./rollup.ts";

const series = {
  accountId: "acc",
  workspace: "w",
  resourceType: "sandbox",
  resourceName: "s",
  resourceUuid: "u",
  dimension: "sandbox_compute_runtime_gbs",
};

const anyEvent = fc
  .record({ startMs: fc.nat(1000 * DAY_MS), lengthMs: fc.nat(50 * HOUR_MS), quantity: fc.nat(Number.MAX_SAFE_INTEGER) })
  .map(({ startMs, lengthMs, quantity }) => ({ series, startMs, endMs: startMs + lengthMs, quantity, key: "k" }));

test("an event is split at full hours, and nothing of it is lost", () => {
  fc.assert(
    fc.property(anyEvent, (event) => {
      const parts = splitAtHours(event);
      assert.equal(
        parts.reduce((sum, { quantity }) => sum + BigInt(quantity), 0n),
        BigInt(event.quantity),
      );
      assert.equal(parts[0]?.startMs, event.startMs);
      assert.equal(parts.at(-1)?.endMs, event.endMs);
      for (const [index, part] of parts.entries()) {
        assert.ok(isWithinHour(part));
        const next = parts[index + 1];
        if (next) assert.deepEqual([part.endMs, hourOf(part.startMs) + 1], [next.startMs, hourOf(next.startMs)]);
      }
    }),
  );
});

test("an event that ends on the full hour stays whole, one that starts there belongs to the new hour", () => {
  const event = { series, startMs: HOUR_MS / 2, endMs: HOUR_MS, quantity: 10, key: "k" };
  assert.deepEqual(splitAtHours(event), [event]);
  const moment = { ...event, startMs: HOUR_MS };
  assert.deepEqual(splitAtHours(moment), [moment]);
});

test("the shares of adjoining windows add up to the share of both", () => {
  fc.assert(
    fc.property(anyEvent, fc.array(fc.nat(1100 * DAY_MS), { minLength: 3, maxLength: 3 }), (event, times) => {
      const [a = 0, b = 0, c = 0] = times.sort((x, y) => x - y);
      assert.equal(quantityWithin(event, a, b) + quantityWithin(event, b, c), quantityWithin(event, a, c));
      assert.equal(quantityWithin(event, 0, 2000 * DAY_MS), BigInt(event.quantity));
    }),
  );
});
