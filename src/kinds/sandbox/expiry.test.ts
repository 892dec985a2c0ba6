import assert from "node:assert/strict";
import { test } from "node:test";
import { expiryOf } from "./expiry.ts";

const createdAt = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;
const policy = (type: string, value: string) => ({ type, value });

const cases: [string, object, object, [number, RegExp] | null][] = [
  ["nothing said, no end", {}, {}, null],
  ["age", { runtime: { ttl: "15m" } }, {}, [15 * MINUTE, /^spec\.runtime\.ttl$/]],
  ["date", { runtime: { expires: "2026-01-01T00:05:00Z" } }, {}, [5 * MINUTE, /^spec\.runtime\.expires$/]],
  [
    "the earliest counts",
    {
      runtime: { ttl: "1h", expires: "2026-01-02T00:00:00Z" },
      lifecycle: { expirationPolicies: [policy("date", "2026-01-01T00:30:00Z"), policy("ttl-max-age", "40m")] },
    },
    {},
    [30 * MINUTE, /expirationPolicies\[0\] \(date/],
  ],
  [
    "idle time counts from the creation at first",
    { lifecycle: { expirationPolicies: [policy("ttl-idle", "10m")] } },
    {},
    [10 * MINUTE, /ttl-idle 10m/],
  ],
  [
    "idle time starts anew when it fell asleep or woke",
    { lifecycle: { expirationPolicies: [policy("ttl-idle", "10m")] } },
    { idleSince: createdAt + 7 * MINUTE },
    [17 * MINUTE, /ttl-idle 10m/],
  ],
];

for (const [title, spec, state, expected] of cases)
  test(title, () => {
    const expiry = expiryOf({
      spec: spec as Record<string, unknown>,
      state: state as Record<string, unknown>,
      createdAt,
    });
    if (expected === null) {
      assert.equal(expiry, null);
      return;
    }
    assert.equal(expiry?.atMs, createdAt + expected[0]);
    assert.match(expiry?.clock ?? "", expected[1]);
  });
