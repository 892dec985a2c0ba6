/**
 * Usage and cost as OpenMetrics counters. They are read from the ledger at each scrape, so they survive restarts. They
 * do not name accounts or workspaces: a scraper need not be allowed to see a bill.
 */
import { Counter, type Registry } from "prom-client";
import type { Usage } from "../store/usage/usage.ts";
import { DIMENSIONS, isDimension, usageOf } from "./dimensions.ts";
import { costToUsd } from "./price-book.ts";

export function addUsageCounters(registry: Registry, ledger: Pick<Usage, "totalsAcrossAccounts">): void {
  let asked: ReturnType<typeof ledger.totalsAcrossAccounts> | null = null;
  /** Both counters of one scrape share one ledger query. */
  const totals = () => {
    asked ??= ledger.totalsAcrossAccounts().finally(() => {
      asked = null;
    });
    return asked;
  };
  new Counter({
    name: "berth_usage_cost_usd_total",
    help: "Cost of everything used on this platform, by billing dimension.",
    labelNames: ["dimension"],
    registers: [registry],
    async collect() {
      const found = await totals();
      this.reset();
      for (const { dimension, cost } of found) this.inc({ dimension }, costToUsd(cost));
    },
  });
  new Counter({
    name: "berth_usage_total",
    help: "Everything used on this platform, by billing dimension and in its unit.",
    labelNames: ["dimension", "unit"],
    registers: [registry],
    async collect() {
      const found = await totals();
      this.reset();
      for (const { dimension, quantity } of found) {
        if (!isDimension(dimension)) continue;
        this.inc({ dimension, unit: DIMENSIONS[dimension].unit }, usageOf(dimension, quantity));
      }
    },
  });
}
