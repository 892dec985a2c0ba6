/** Places in an ordered list: shares between its ends, by time and by name. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { nameAt, shareOfName, shareOfTime, timeAt } from "../../console/lib/list-place.ts";

test("a share of a list by time is a time between its ends, in both orders", () => {
  const ends = ["2026-01-01T00:00:00.000Z", "2026-01-03T00:00:00.000Z"] as const;
  assert.equal(timeAt(ends, 0.5), "2026-01-02T00:00:00.000Z");
  assert.equal(timeAt(ends.toReversed() as [string, string], 0.25), "2026-01-02T12:00:00.000Z");
  assert.equal(shareOfTime(ends, timeAt(ends, 0.75)), 0.75);
  assert.deepEqual([shareOfTime(ends, "2020-01-01T00:00:00Z"), shareOfTime(ends, "not a time")], [0, 0]);
});

test("a share of a list by name lies between names, behind what all of them begin with", () => {
  const ends = ["box-000000", "box-999999"] as const;
  const middle = nameAt(ends, 0.5);
  assert.ok(middle > "box-4" && middle < "box-6", middle);
  for (const share of [0, 0.1, 0.5, 0.9, 1]) assert.ok(Math.abs(shareOfName(ends, nameAt(ends, share)) - share) < 1e-6);
  assert.ok(nameAt(["zebra", "ant"], 0.25) > nameAt(["zebra", "ant"], 0.75));
  assert.equal(nameAt(["one", "one"], 0.5), "one");
});
