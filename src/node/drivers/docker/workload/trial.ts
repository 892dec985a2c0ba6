/**
 * A trial workload at the opening of the driver. It fails where the engine runs on another machine, sees other folders
 * under the same names, or shares no sockets with its containers: the first create would fail with less of a reason.
 */
import { randomBytes } from "node:crypto";
import { PlatformError } from "../../../../contract/errors.ts";
import { dial } from "../../../dial/dial.ts";
import type { Driver } from "../../../driver.ts";

const LIMITS = { memoryMb: 128, cpus: 1 };

export async function tryOut(driver: Driver, host: string, dataDir: string): Promise<void> {
  const uid = `trial-${randomBytes(6).toString("hex")}`;
  try {
    const image = "base-image";
    const made = await driver.create({ uid, name: "trial", image, env: {}, limits: LIMITS, network: "closed" });
    (await dial(made.endpoint, "api")).destroy();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const remedy = `Docker must run on this machine and see ${dataDir} under the same path, and the server must be root or the user of a rootless Docker`;
    throw new PlatformError("unavailable", `A trial workload failed with Docker at ${host}: ${reason} (${remedy}).`, {
      cause: error,
    });
  } finally {
    await driver.destroy(uid);
  }
}
