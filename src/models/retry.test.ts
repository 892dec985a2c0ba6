import assert from "node:assert/strict";
import { test } from "node:test";
import { judge, RETRY_DEFAULTS, type RetryVerdict, retryAfterMs } from "./retry.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const verdict = (status: number | null, attempts: number, hasNext: boolean, headers: string[] = []): RetryVerdict =>
  judge({ status, hopeless: false, headers, attempts, hasNext }, RETRY_DEFAULTS, NOW, () => 1);

const TABLE: [what: string, actual: RetryVerdict, expected: RetryVerdict][] = [
  ["no answer is tried again", verdict(null, 1, false), { do: "retry", delayMs: 250 }],
  ["each time later", verdict(503, 2, false), { do: "retry", delayMs: 500 }],
  ["until the tries are used up", verdict(503, 3, false), { do: "deliver" }],
  ["and then the next model", verdict(503, 3, true), { do: "next" }],
  ["a pause asked for is kept", verdict(429, 1, false, ["Retry-After", "2"]), { do: "retry", delayMs: 2062 }],
  ["a long pause is not waited for", verdict(429, 1, false, ["retry-after", "60"]), { do: "deliver" }],
  ["but another model is asked", verdict(429, 1, true, ["retry-after", "60"]), { do: "next" }],
  ["a provider may forbid the retry", verdict(500, 1, false, ["x-should-retry", "false"]), { do: "deliver" }],
  ["a bad request stays one", verdict(400, 1, true), { do: "deliver" }],
  ["an unknown model stays one", verdict(404, 1, true), { do: "deliver" }],
  ["a bad key is told", verdict(401, 1, false), { do: "deliver" }],
  ["unless another model has another key", verdict(401, 1, true), { do: "next" }],
];

test("what was waited for long enough is not waited for again, but another model is asked", () => {
  const failed = { status: null, hopeless: true, headers: [], attempts: 1 };
  assert.deepEqual(
    judge({ ...failed, hasNext: false }, RETRY_DEFAULTS, NOW, () => 1),
    { do: "deliver" },
  );
  assert.deepEqual(
    judge({ ...failed, hasNext: true }, RETRY_DEFAULTS, NOW, () => 1),
    { do: "next" },
  );
});

for (const [what, actual, expected] of TABLE) test(what, () => assert.deepEqual(actual, expected));

test("pauses are read in all their forms", () => {
  assert.equal(retryAfterMs(["retry-after-ms", "150", "retry-after", "9"], NOW), 150);
  assert.equal(retryAfterMs(["retry-after", "0.5"], NOW), 500);
  assert.equal(retryAfterMs(["retry-after", "Thu, 01 Jan 2026 00:00:03 GMT"], NOW), 3000);
  assert.equal(retryAfterMs(["retry-after", "Wed, 31 Dec 2025 00:00:00 GMT"], NOW), 0);
  assert.equal(retryAfterMs(["retry-after", "soon"], NOW), null);
  assert.equal(retryAfterMs([], NOW), null);
});
