/**
 * Replaces the daemon under running processes. The daemon records the upgrade and exits, init starts the executable
 * that the platform has put in place, and the new daemon adopts the processes and records that it runs.
 */

import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { spawn } from "../bun.ts";
import type { Daemon } from "../daemon-context.ts";
import { EXIT_FOR_UPGRADE, INIT_PID_VARIABLE, STATE_FILES } from "../init/protocol.ts";
import { VERSION } from "../version.ts";

export interface UpgradeStatus {
  status: "idle" | "running" | "completed" | "failed";
  step: string;
  version: string;
  error?: string;
  lastAttempt?: string;
  binaryPath?: string;
}

interface Upgrades {
  count: number;
  last: UpgradeStatus;
}

const RESTARTING = "restart";
/** Version names that mean the platform's current executable. */
const NEWEST = new Set(["latest", "develop", "main"]);
const CHECK_TIMEOUT_MS = 10_000;

export function upgradesOf(daemon: Daemon): Upgrades {
  try {
    return JSON.parse(readFileSync(join(daemon.config.stateDir, STATE_FILES.upgrades), "utf8")) as Upgrades;
  } catch {
    return { count: 0, last: { status: "idle", step: "", version: VERSION } };
  }
}

/** Called at start: completes the record of an upgrade that asked for this restart. */
export function noteArrival(daemon: Daemon): void {
  const { count, last } = upgradesOf(daemon);
  if (last.step !== RESTARTING || last.status !== "running") return;
  save(daemon, { count: count + 1, last: { ...last, status: "completed", step: "completed", version: VERSION } });
}

/** Recorded before the response is sent, so that the next status request does not show an earlier upgrade. */
export function noteBegin(daemon: Daemon, version: string): void {
  const last: UpgradeStatus = { status: "running", step: "check", version, lastAttempt: new Date().toISOString() };
  save(daemon, { ...upgradesOf(daemon), last });
}

/** Runs after the response has been sent. Exits the process on success. */
export async function upgradeTo(daemon: Daemon, version: string, baseUrl: string | undefined): Promise<void> {
  const { upgradeFile } = daemon.config;
  const { count, last } = upgradesOf(daemon);
  const note = (change: Partial<UpgradeStatus>): void => save(daemon, { count, last: { ...last, ...change } });
  const candidate = upgradeFile !== undefined && existsSync(upgradeFile) ? upgradeFile : undefined;
  try {
    if (!process.env[INIT_PID_VARIABLE]) throw new Error("this daemon has no init that could restart it");
    if (baseUrl) throw new Error("executables come from the platform, not from an address");
    const offered = candidate === undefined ? VERSION : await versionOf(candidate);
    if (!NEWEST.has(version) && version !== offered) throw new Error(`version ${version} is not here; ${offered} is`);
    if (candidate !== undefined) writeFileSync(join(daemon.config.stateDir, STATE_FILES.upgraded), "");
    note({ step: RESTARTING, version: offered, ...(candidate === undefined ? {} : { binaryPath: candidate }) });
  } catch (error) {
    return note({ status: "failed", error: error instanceof Error ? error.message : String(error) });
  }
  process.exit(EXIT_FOR_UPGRADE);
}

/** Runs the executable once, to prove that it works in this sandbox. */
async function versionOf(executable: string): Promise<string> {
  const child = spawn([executable, "version"], { stdio: ["ignore", "pipe", "ignore"] });
  const timer = setTimeout(() => child.kill("SIGKILL"), CHECK_TIMEOUT_MS);
  const text = await new Response(child.stdout).text();
  const code = await child.exited;
  clearTimeout(timer);
  if (code !== 0) throw new Error(`${executable} does not run (exit code ${code})`);
  return text.trim();
}

function save(daemon: Daemon, upgrades: Upgrades): void {
  const file = join(daemon.config.stateDir, STATE_FILES.upgrades);
  writeFileSync(`${file}.new`, JSON.stringify(upgrades));
  renameSync(`${file}.new`, file);
}
