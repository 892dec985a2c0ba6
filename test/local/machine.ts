/** A local driver with a data folder of its own, for tests that need real isolation. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBun } from "../../src/lib/bun-program.ts";
import { CAPABILITY_NAMES } from "../../src/node/capabilities/capabilities.ts";
import type { Candidate } from "../../src/node/conformance/conformance.ts";
import type { Harness } from "../../src/node/conformance/harness.ts";
import {
  type LocalDriver,
  type LocalDriverOptions,
  openLocalDriver,
} from "../../src/node/drivers/local/local-driver.ts";
import { findCgroups, removeCgroupHost } from "../../src/node/drivers/local/machine/cgroup.ts";
import type { Grade } from "../../src/node/workload.ts";
import { closeAtEnd } from "../closing.ts";
import { sandboxdBinary } from "../sandboxd-binary.ts";
import { shellHarness } from "./shell-harness.ts";

/** Why the machine cannot run these tests; null when it can, at the grade that it offers (`docs/isolation.md`). */
export const localDriverMissing: string | null =
  process.platform !== "linux"
    ? "needs Linux"
    : findBun() === null
      ? "needs Bun: npm install --include=optional"
      : process.getuid?.() === 0 || mayMakeUserNamespaces()
        ? null
        : "needs root or user namespaces: run as root, or `sysctl kernel.apparmor_restrict_unprivileged_userns=0`";

/** Grades that this user reaches, strongest first. */
export const localGrades: readonly Grade[] = process.getuid?.() === 0 ? ["mapped", "contained"] : ["user"];

/** Why nobody inside can become another user; false where they can. */
export const usersMissing = needsRoot("other users inside a workload");
/** Why the size of a volume does not hold; false where it does. */
export const sizesMissing = needsRoot("volumes with a size");
/** Why workloads have no addresses of their own; false where root may give them some. */
export const addressesMissing = needsRoot("address translation");

/** Reason to skip what grade `user` does not have. */
function needsRoot(what: string): string | false {
  return process.getuid?.() === 0 ? false : `needs root for ${what}: run the tests as root to include it`;
}

/** Reason to skip what a machine does not limit; `held` is what its probe says. */
export const memoryMissing = (held: readonly string[]): string | false =>
  held.includes("memory") ? false : "needs a control group that limits memory: run the tests as root to include it";

function mayMakeUserNamespaces(): boolean {
  return spawnSync("unshare", ["--map-root-user", "--mount", "true"]).status === 0;
}

export class LocalMachine {
  readonly dataDir: string;
  readonly warnings: unknown[] = [];
  readonly #drivers = new Set<LocalDriver>();
  /** Called when the machine was disposed of in time. */
  readonly #closed = closeAtEnd(() => this.#end());

  constructor(dataDir = mkdtempSync(join(tmpdir(), "berth-"))) {
    this.dataDir = dataDir;
  }

  async open(options: Partial<LocalDriverOptions> = {}): Promise<LocalDriver> {
    const driver = await openLocalDriver({
      dataDir: this.dataDir,
      brand: "berth",
      sandboxd: await sandboxdBinary(),
      nodeBinary: realpathSync(process.execPath),
      node: "here",
      runsc: "/nonexistent/runsc", // suites of gVisor name theirs
      onWarning: (message, fields) => this.warnings.push({ message, fields }),
      ...options,
    });
    this.#drivers.add(driver);
    return driver;
  }

  /** What a failed test has left running ends too. */
  async #end(): Promise<void> {
    for (const driver of this.#drivers) await driver.stop("kill").catch(() => {});
    await (await this.open({ outbound: "proxy" })).stop("kill"); // whatever drivers that were stopped had kept
    this.dispose();
  }

  dispose(): void {
    this.#closed();
    rmSync(this.dataDir, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** Whether control groups of this machine limit memory and processors, for this user. */
export function holdsLimits(): boolean {
  const found = findCgroups(`berth-look-${process.pid}`);
  removeCgroupHost(found);
  return found.limits.includes("memory") && found.limits.includes("cpu");
}

const ONLY_IN_GVISOR: readonly string[] = ["hibernation", "memorySnapshots"];

/** The local driver as the conformance suite takes it. */
export const localCandidate = (options: Partial<LocalDriverOptions>): Candidate => ({
  capabilities: CAPABILITY_NAMES.filter(
    (name) => !ONLY_IN_GVISOR.includes(name) && (name !== "resizing" || holdsLimits()),
  ),
  open: () => localHarness(options),
});

/** A local driver for the conformance suite; leaves no trace, or its end fails. */
function localHarness(options: Partial<LocalDriverOptions>): Promise<Harness> {
  const machine = new LocalMachine();
  return shellHarness({
    open: () => machine.open({ poolSize: 1, ...options }),
    neighbour: () => localHarness({ ...options, node: "there", poolSize: 0 }),
    ended: () => {
      assert.deepEqual(tracesOf(machine.dataDir), []);
      assert.deepEqual(machine.warnings, []);
      machine.dispose();
    },
  });
}

/** Whatever a driver may leave behind on the machine: processes, mounts, control groups, folders. */
export function tracesOf(dataDir: string): string[] {
  const processes = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => ["mountinfo", "cmdline"].some((file) => readOrEmpty(`/proc/${pid}/${file}`).includes(dataDir)))
    .map((pid) => `process ${pid} ${readOrEmpty(`/proc/${pid}/cmdline`)}`);
  const mounts = readOrEmpty("/proc/self/mountinfo")
    .split("\n")
    .filter((line) => line.includes(dataDir));
  const folders = readdirSync(join(dataDir, "workloads"));
  const group = `*-${createHash("sha256").update(dataDir).digest("hex").slice(0, 8)}`; // the brand comes first
  const groups = globSync(`/sys/fs/cgroup/**/${group}`);
  return [...processes, ...mounts, ...folders, ...groups];
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
