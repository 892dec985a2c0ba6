import assert from "node:assert/strict";
import { test } from "node:test";
import { Histogram, Registry } from "prom-client";
import { createRequestTimes } from "./request-times.ts";

test("request times read as the library's own histogram would", async () => {
  const [ours, theirs] = [new Registry(), new Registry()];
  const times = createRequestTimes(ours);
  const histogram = new Histogram({
    name: "berth_api_request_seconds",
    help: "Time to answer a management request.",
    labelNames: ["operation", "status"],
    registers: [theirs],
    buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30],
  });
  const seen: [string, number, number][] = [
    ["driveGet", 200, 0.0005],
    ["driveGet", 200, 0.001],
    ["driveGet", 404, 0.0031],
    ["driveCreate", 200, 5],
    ["driveCreate", 200, 31],
    ["driveGet", 200, 0.2],
  ];
  for (const [operation, status, seconds] of seen) {
    times.observe(operation, status, seconds);
    histogram.observe({ operation, status }, seconds);
  }
  const linesOf = async (registry: Registry) => (await registry.metrics()).split("\n").sort();
  assert.deepEqual(await linesOf(ours), await linesOf(theirs));
  assert.ok(
    (await linesOf(ours)).includes('berth_api_request_seconds_bucket{le="0.001",operation="driveGet",status="200"} 2'),
  );
});
