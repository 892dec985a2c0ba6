import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../test/properties.ts";
import { pickRevision, type RevisionPlan } from "./pick-revision.ts";

const plan = fc.record(
  {
    active: fc.constantFrom("r1", "r2", "a.b"),
    canary: fc.constantFrom("r2", "r3", "c.d"),
    canaryPercent: fc.integer({ min: -10, max: 120 }),
    stickyTtlSeconds: fc.integer({ min: 0, max: 100_000 }),
  },
  { requiredKeys: ["active"] },
);
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const now = fc.integer({ min: 0, max: 4e12 });

test("the pick is always a live revision, whatever the client sends", () => {
  fc.assert(
    fc.property(plan, fc.option(fc.string()), random, now, (given, pin, draw, at) => {
      const { revision } = pickRevision(given, pin, draw, at);
      assert.ok(revision === given.active || (revision === given.canary && (given.canaryPercent ?? 0) > 0));
    }),
  );
});

test("a pin holds until it expires and not longer", () => {
  fc.assert(
    fc.property(plan, random, random, now, (given, first, second, at) => {
      const start = pickRevision(given, null, first, at);
      if (start.pin === null) return;
      const ttlMs = (given.stickyTtlSeconds ?? 0) * 1000;
      const kept = pickRevision(given, start.pin, second, at + ttlMs - 1);
      assert.deepEqual(kept, { revision: start.revision, pin: null });
      const after = pickRevision(given, start.pin, second, at + ttlMs);
      assert.deepEqual(after, pickRevision(given, null, second, at + ttlMs));
    }),
  );
});

test("shares are kept", () => {
  for (const canaryPercent of [0, 1, 30, 99, 100]) {
    let canaries = 0;
    for (let draw = 0; draw < 1000; draw += 1) {
      const { revision } = pickRevision({ active: "a", canary: "c", canaryPercent }, null, draw / 1000, 0);
      if (revision === "c") canaries += 1;
    }
    assert.equal(canaries, canaryPercent * 10);
  }
});

test("a share of nothing ends every pin", () => {
  const sticky: RevisionPlan = { active: "a", canary: "c", canaryPercent: 50, stickyTtlSeconds: 60 };
  const { pin, revision } = pickRevision(sticky, null, 0, 0);
  assert.equal(revision, "c");
  assert.equal(pickRevision({ ...sticky, canaryPercent: 0 }, pin, 0, 1).revision, "a");
  assert.equal(pickRevision({ ...sticky, canary: "d" }, pin, 0.9, 1).revision, "a");
});

test("a forged pin cannot outlast the plan", () => {
  const sticky: RevisionPlan = { active: "a", canary: "c", canaryPercent: 50, stickyTtlSeconds: 60 };
  assert.equal(pickRevision(sticky, "99999999999999.c", 0.9, 0).revision, "a");
  assert.equal(pickRevision(sticky, "59000.c", 0.9, 0).revision, "c");
});
