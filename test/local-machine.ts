/** A local driver with a data folder of its own, for tests that need real isolation. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cachedSandboxd, findBun } from "../scripts/build-sandboxd.ts";
import { call } from "../src/runtime/conformance.ts";
import type { Observed } from "../src/runtime/driver.ts";
import {
  type LocalDriver,
  type LocalDriverOptions,
  openLocalDriver,
} from "../src/runtime/drivers/local/local-driver.ts";

/** Why the machine cannot run these tests; null when it can. */
export const localDriverMissing: string | null =
  process.platform !== "linux"
    ? "needs Linux"
    : process.getuid?.() !== 0
      ? "needs root: run the tests as root to include it"
      : findBun() === null
        ? "needs Bun: npm install --include=optional"
        : null;

/** Built once per version of its sources; test files run side by side share it. */
export const sandboxdBinary = (): Promise<string> => cachedSandboxd(join(tmpdir(), "berth-sandboxd"));

export class LocalMachine {
  readonly dataDir = mkdtempSync(join(tmpdir(), "berth-"));
  readonly warnings: unknown[] = [];

  async open(options: Partial<LocalDriverOptions> = {}): Promise<LocalDriver> {
    return openLocalDriver({
      dataDir: this.dataDir,
      brand: "berth",
      sandboxd: await sandboxdBinary(),
      nodeBinary: realpathSync(process.execPath),
      node: "here",
      onWarning: (message, fields) => this.warnings.push({ message, fields }),
      ...options,
    });
  }

  dispose(): void {
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}

export interface Ran {
  exitCode: number;
  output: string;
}

/** Runs a shell line inside and waits for its end. */
export async function run(workload: Pick<Observed, "endpoint">, command: string): Promise<Ran> {
  const body = { command, waitForCompletion: true, timeout: 60 };
  const { status, text } = await call(workload, "/process", { method: "POST", body });
  if (status !== 200) throw new Error(`${status} ${text}`);
  const { exitCode, logs } = JSON.parse(text) as { exitCode: number; logs: string };
  return { exitCode, output: logs };
}
