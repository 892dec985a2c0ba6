import assert from "node:assert/strict";
import { test } from "node:test";
import { DIMENSIONS, UNIT_BASE, usageOf, usageOfAll } from "./dimensions.ts";

test("usage is the number that dividing by hand gives, small and large", () => {
  assert.equal(usageOf("sandbox_compute_runtime_gbs", 512n * 9819n), 4.9095);
  assert.equal(usageOf("sandbox_compute_runtime_gbs", 1_024_000n * 10n ** 14n + 512_000n), 100_000_000_000_000.5);
  assert.equal(usageOf("custom_domain_active_time_hours", 1_200_000n), 1 / 3);
  assert.equal(usageOf("model_provider_cost_usd", 123_456_789_012_345_678n), 123_456_789.01234567);
});

test("amounts of different units are added before they are rounded", () => {
  const tenths = Array.from({ length: 10 }, () => ({
    dimension: "volume_storage_gbs",
    quantity: UNIT_BASE[DIMENSIONS.volume_storage_gbs.unit] / 10n,
  }));
  assert.equal(usageOfAll(tenths), 1);
  const mixed = [
    { dimension: "model_input_tokens_count", quantity: 500n },
    { dimension: "model_provider_cost_usd", quantity: 611_500n },
    { dimension: "custom_domain_active_time_hours", quantity: 3_600_000n },
    { dimension: "sandbox_egress_gb", quantity: 524_288n },
  ];
  assert.equal(usageOfAll(mixed), 501.5006115);
});
