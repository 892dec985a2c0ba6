import assert from "node:assert/strict";
import { test } from "node:test";
import { createRateLimiter } from "./rate-limiter.ts";

test("a key spends its burst, is told how long to wait, and gets its rate back", () => {
  let now = 1_000_000;
  const limiter = createRateLimiter({ now: () => now }, { burst: 3, perMinute: 60 });
  assert.deepEqual(
    [1, 2, 3].map(() => limiter.take("a")),
    [0, 0, 0],
  );
  assert.equal(limiter.take("a"), 1000);
  assert.equal(limiter.take("b"), 0, "another key has a bucket of its own");
  now += 999;
  assert.equal(limiter.take("a"), 1, "refusals cost nothing");
  now += 1;
  assert.equal(limiter.take("a"), 0);
  now += 3_600_000;
  assert.deepEqual(
    [1, 2, 3, 4].map(() => limiter.take("a") > 0),
    [false, false, false, true],
    "a long rest fills the bucket, no more",
  );
});

test("memory is bounded, and a flood of new keys does not free a busy one early", () => {
  let now = 0;
  const limiter = createRateLimiter({ now: () => now }, { burst: 1, perMinute: 60 }, 10);
  for (let each = 0; each < 9; each++) assert.equal(limiter.take(`old-${each}`), 0);
  now += 500;
  assert.equal(limiter.take("busy"), 0);
  now += 500; // the old keys' buckets are full again and are removed first
  for (let each = 0; each < 9; each++) assert.equal(limiter.take(`new-${each}`), 0);
  assert.ok(limiter.take("busy") > 0);
});
