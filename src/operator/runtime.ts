/** The machine's own driver, for commands that work beside a server or without one. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Config } from "../config.ts";
import type { Driver, Probe } from "../node/driver.ts";
import { DRIVER_DEFAULT, DRIVERS } from "../node/drivers/index.ts";

export const openRuntime = (config: Config, dataDir: string): Promise<Driver> =>
  DRIVERS[DRIVER_DEFAULT]({ dataDir, brand: config.brand, allowUnisolated: true });

/** The isolation that this machine can give, tried in a separate folder, also beside a running server. */
export async function probeIsolation(config: Config): Promise<Probe> {
  const dir = mkdtempSync(join(tmpdir(), "berth-probe-"));
  try {
    const driver = await openRuntime(config, dir);
    try {
      return await driver.probe();
    } finally {
      await driver.stop("kill");
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
