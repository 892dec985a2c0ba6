import assert from "node:assert/strict";
import { test } from "node:test";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { scrape, toOpenMetrics } from "./open-metrics.ts";

function filled(): Registry {
  const registry = new Registry();
  const registers = [registry];
  new Counter({ name: "used_total", help: 'All of the "used".', labelNames: ["unit"], registers }).inc(
    { unit: "gbs" },
    2.5,
  );
  new Gauge({ name: "open_total", help: "A gauge keeps its name.", registers }).set(3);
  new Histogram({ name: "seconds", help: "Times.", buckets: [1], registers }).observe(0.5);
  return registry;
}

test("counters are families without _total, nothing is empty, and the end is marked", async () => {
  assert.equal(
    toOpenMetrics(await filled().metrics()),
    [
      '# HELP used All of the \\"used\\".',
      "# TYPE used counter",
      'used_total{unit="gbs"} 2.5',
      "# HELP open_total A gauge keeps its name.",
      "# TYPE open_total gauge",
      "open_total 3",
      "# HELP seconds Times.",
      "# TYPE seconds histogram",
      'seconds_bucket{le="1"} 1',
      'seconds_bucket{le="+Inf"} 1',
      "seconds_sum 0.5",
      "seconds_count 1",
      "# EOF",
      "",
    ].join("\n"),
  );
});

test("who does not ask for it gets what everybody reads", async () => {
  const registry = filled();
  for (const accept of [undefined, "*/*", "text/plain;version=0.0.4"]) {
    const { contentType, text } = await scrape(registry, accept);
    assert.match(contentType, /^text\/plain; version=0\.0\.4/);
    assert.match(text, /^# TYPE used_total counter$/m);
  }
  const asked = await scrape(registry, "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;q=0.5");
  assert.equal(asked.contentType, "application/openmetrics-text; version=1.0.0; charset=utf-8");
  assert.match(asked.text, /# EOF\n$/);
});

test("the process itself is told of from the first scrape on", async () => {
  const registry = new Registry();
  for (let n = 0; n < 2; n += 1) assert.match((await scrape(registry, undefined)).text, /^process_cpu_seconds_total /m);
});
