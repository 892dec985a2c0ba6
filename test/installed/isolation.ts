/** Whether this machine can run workloads at all; the installation's own doctor uses the same probe. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/config.ts";
import { probeIsolation } from "../../src/operator/runtime.ts";

const folder = mkdtempSync(join(tmpdir(), "berth-probe-"));
const { grade } = await probeIsolation(loadConfig({ flags: { data: folder }, env: {} }));
rmSync(folder, { recursive: true, force: true });

export const workloadsSkip: string | false =
  grade === "none" && "this machine cannot isolate workloads; `berth doctor` says what is missing";
