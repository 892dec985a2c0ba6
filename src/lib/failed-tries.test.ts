import assert from "node:assert/strict";
import { test } from "node:test";
import { FailedTries } from "./failed-tries.ts";
import { MINUTE_MS } from "./time/clock.ts";

test("wrong credentials from one network wait, those that were right go on, and other networks are not touched", () => {
  let now = 0;
  const tries = new FailedTries({ now: () => now }, 3);
  tries.passed("right");
  for (const word of ["a", "b", "c"]) {
    assert.equal(tries.waitMs("192.0.2.1", word), 0);
    tries.failed("192.0.2.1", word);
  }
  assert.equal(tries.waitMs("192.0.2.1", "d"), MINUTE_MS / 3);
  assert.equal(tries.waitMs("192.0.2.1", "right"), 0);
  assert.equal(tries.waitMs("192.0.2.2", "d"), 0);
  tries.failed("192.0.2.1", "right");
  assert.ok(tries.waitMs("192.0.2.1", "right") > 0, "credentials that have ended are known no more");
  now = MINUTE_MS;
  assert.equal(tries.waitMs("192.0.2.1", "d"), 0);
});
