/**
 * A trial workload at the first opening of the driver with an engine. It fails where the engine runs on another machine,
 * sees other folders under the same names, or shares no sockets with its containers: the first create would fail with
 * less of a reason. A file remembers what was tried, so that later starts need not wait for it.
 */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import { dial } from "../../../dial/dial.ts";
import type { Driver } from "../../../driver.ts";

const LIMITS = { memoryMb: 128, cpus: 1 };

export interface Trial {
  driver: Driver;
  host: string;
  dataDir: string;
  /** The engine, image and runtime that are tried. */
  what: string;
}

export async function tryOnce(trial: Trial): Promise<void> {
  const file = join(trial.dataDir, "tried.json");
  if (existsSync(file) && readFileSync(file, "utf8") === trial.what) return;
  await tryOut(trial);
  writeFileSync(file, trial.what);
}

async function tryOut({ driver, host, dataDir }: Trial): Promise<void> {
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
