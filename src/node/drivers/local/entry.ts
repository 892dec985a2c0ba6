/** The local driver, as the list of drivers opens it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Driver, Probe } from "../../driver.ts";
import { cachedSandboxd } from "../../sandboxd-build.ts";
import type { DriverOptions, OwnedWorkload } from "../options.ts";
import { openLocalDriver } from "./local-driver.ts";
import { isRunning, loadRecords, type WorkloadRecord } from "./workload/record.ts";

export const open = async (options: DriverOptions): Promise<Driver> =>
  openLocalDriver({ ...options, sandboxd: await cachedSandboxd(join(options.dataDir, "bin")) });

/** Tried in a separate folder, also beside a running server. */
export async function probe(options: DriverOptions): Promise<Probe> {
  const dataDir = mkdtempSync(join(tmpdir(), "berth-probe-"));
  try {
    const driver = await open({ ...options, dataDir });
    try {
      return await driver.probe();
    } finally {
      await driver.stop("kill");
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** A pooled workload has no owner yet and holds no files. */
export const owned = async ({ dataDir }: DriverOptions): Promise<OwnedWorkload[]> =>
  loadRecords(join(dataDir, "workloads")).flatMap(({ record }) =>
    record?.uid ? [{ ...pick(record), runs: isRunning(record), keepsFiles: !record.command }] : [],
  );

const pick = ({ name, log }: WorkloadRecord): Pick<OwnedWorkload, "name" | "log"> => ({
  name,
  ...(log ? { log } : {}),
});
