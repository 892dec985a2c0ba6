/** The checks of `berth doctor`, run by a server about itself. */
import type { Config } from "../config.ts";
import type { MachineFinding } from "../kinds/port.ts";
import { SECOND_MS } from "../lib/time/clock.ts";
import type { Driver } from "../node/driver.ts";

/** Findings are kept this long: a check opens the database and asks the machine, and many pages may ask for it. */
const KEPT_MS = 30 * SECOND_MS;

export function createExamination(config: Config, driver: Pick<Driver, "probe">): () => Promise<MachineFinding[]> {
  let last: { findings: Promise<MachineFinding[]>; untilMs: number } | null = null;
  return () => {
    if (last !== null && performance.now() < last.untilMs) return last.findings;
    const findings = examined(config, driver);
    last = { findings, untilMs: performance.now() + KEPT_MS };
    return findings;
  };
}

async function examined(config: Config, driver: Pick<Driver, "probe">): Promise<MachineFinding[]> {
  const { examine } = await import("../operator/doctor.ts"); // lazy: few requests ask for it
  return examine(config, undefined, () => driver.probe());
}
