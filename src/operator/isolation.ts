/** What isolation this machine can give, tried out in a folder of its own beside any server that is running. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Config } from "../config.ts";
import type { Probe } from "../runtime/driver.ts";

export async function probeIsolation(config: Config): Promise<Probe> {
  const [{ openLocalDriver }, { cachedSandboxd }] = await Promise.all([
    import("../runtime/drivers/local/local-driver.ts"),
    import("../../scripts/build-sandboxd.ts"),
  ]);
  const dir = mkdtempSync(join(tmpdir(), "berth-probe-"));
  try {
    const driver = await openLocalDriver({
      dataDir: dir,
      brand: config.brand,
      sandboxd: await cachedSandboxd(join(dir, "bin")),
      allowUnisolated: true,
    });
    try {
      return await driver.probe();
    } finally {
      await driver.stop("kill");
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
