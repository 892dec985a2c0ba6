/**
 * The isolation that this machine can give to workloads, found by trying: the driver starts a trial workload with each
 * grade, strongest first, and uses the first grade that works. The failures of the stronger grades are reported as
 * missing.
 */
import { mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { Grade } from "../../../workload.ts";
import { installDaemon } from "../../common/install-daemon.ts";
import { seccompFilter } from "../calls/seccomp.ts";
import { failureOf, Spawner } from "../calls/spawner.ts";
import type { Arch } from "../calls/stepper.ts";
import { CAP } from "../calls/syscalls.ts";
import type { ResolvedImage } from "../images/images.ts";
import { HostNames } from "../workload/host-names.ts";
import { type Identity, type LaunchPlan, launchSteps } from "../workload/launch-program.ts";
import { readExit } from "../workload/record.ts";
import type { CgroupHost } from "./cgroup.ts";
import { UserIds } from "./user-ids.ts";

export interface Machine {
  spawner: Spawner;
  hostNames: HostNames;
  /** Folder with the daemon's executable, visible to every workload. */
  binDir: string;
  grade: Grade;
  missing: string[];
  seccomp: Buffer | null;
  cgroups: CgroupHost;
  /** Null where the node may map no ids. */
  ids: UserIds | null;
  ownCapabilities: bigint;
}

/** What root inside may do to its own files and processes. Without effect outside the workload's user namespace. */
export const CAPABILITIES_MAPPED: number[] = Object.values(CAP);

export async function openMachine(
  dir: string,
  sandboxd: string,
  image: ResolvedImage,
  cgroups: CgroupHost,
  only?: Grade,
): Promise<Machine> {
  const arch = process.arch as Arch;
  const spawner = new Spawner(dir, arch);
  const machine: Machine = {
    spawner,
    hostNames: new HostNames(spawner),
    binDir: join(dir, "bin"),
    grade: "none",
    missing: [],
    seccomp: null,
    cgroups,
    ids: null,
    ownCapabilities: readCapabilities(),
  };
  await removeTree(machine.spawner.tempDir);
  mkdirSync(machine.binDir, { recursive: true, mode: 0o755 });
  installDaemon(sandboxd, join(machine.binDir, "sandboxd"));
  if (process.platform !== "linux" || (arch !== "x64" && arch !== "arm64")) {
    machine.missing.push("Isolation needs Linux on x86_64 or aarch64.");
    return machine;
  }
  if (process.getuid?.() === 0 && (only ?? "mapped") === "mapped") machine.ids = new UserIds(dir);
  await machine.spawner.open();
  machine.seccomp = seccompFilter(arch);
  for (const grade of only === "none" ? [] : LADDER.filter((each) => only === undefined || each === only)) {
    const failure = await tryGrade(machine, grade, image);
    if (failure === null) {
      machine.grade = grade;
      break;
    }
    machine.missing.push(`Isolation grade ${grade} does not work here: ${failure}`);
  }
  if (only !== undefined) machine.missing.push(`The operator chose isolation grade ${only}.`);
  for (const limit of ["memory", "cpu", "pids"] as const) {
    if (!cgroups.limits.includes(limit)) machine.missing.push(`No control group can limit ${limit} here.`);
  }
  return machine;
}

const TRIAL_WAIT_MS = 10_000;
const LADDER: Grade[] = ["mapped", "contained", "user"];

/** First id of a workload's range; null where ids are not mapped. */
export const idBaseOf = ({ grade, ids }: Machine, slot: number): number | null =>
  grade === "mapped" && ids ? ids.ofSlot(slot) : null;

export function identityFor(machine: Machine, idBase: number | null): Identity {
  if (machine.grade === "user") return { kind: "user", uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  if (idBase === null) return { kind: "contained" };
  return { kind: "mapped", idBase, ownCapabilities: machine.ownCapabilities };
}

/** Null when the grade works; otherwise the step that failed. */
async function tryGrade(machine: Machine, grade: Grade, image: ResolvedImage): Promise<string | null> {
  const root = process.getuid?.() === 0;
  if (grade !== "user" && !root) return "the server does not run as root.";
  if (grade === "user" && root) return "the server runs as root.";
  const dir = mkdtempSync(join(machine.spawner.tempDir, "trial-"));
  makeWorkloadDirs(dir, image.parts.length);
  const plan: LaunchPlan = {
    identity: identityFor({ ...machine, grade }, grade === "mapped" ? (machine.ids?.trial ?? null) : null),
    dir,
    parts: image.parts,
    shared: [],
    mounts: [],
    hostname: "trial",
    cgroups: [],
    memoryMb: 64,
    capabilities: grade === "contained" ? [] : CAPABILITIES_MAPPED,
    seccomp: machine.seccomp,
    argv: ["/bin/sh", "-c", "touch /trial && test -w /trial"],
    env: ["PATH=/usr/bin:/bin"],
  };
  try {
    const report = await machine.spawner.start(
      (program) => launchSteps(program, plan),
      () => false,
      AbortSignal.timeout(TRIAL_WAIT_MS),
    );
    if (report.failure) return failureOf("a trial", report, "").message;
    // The exit file is written a moment after the last reporting process has ended.
    for (let waitedMs = 0; !readExit(dir) && waitedMs < TRIAL_WAIT_MS; waitedMs++) await delay(1);
    const exit = readExit(dir);
    return exit?.exitCode === 0 ? null : `a trial workload ended with ${JSON.stringify(exit)}.`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await removeTree(dir);
  }
}

export function makeWorkloadDirs(dir: string, parts: number): void {
  for (let part = 0; part < parts; part++) {
    for (const name of ["upper", "work"])
      mkdirSync(join(dir, "fs", String(part), name), { recursive: true, mode: 0o755 });
  }
  for (const name of ["mnt", "host", "run/host", "run/bin", "run/state"])
    mkdirSync(join(dir, name), { recursive: true });
}

function readCapabilities(): bigint {
  if (process.platform !== "linux") return 0n;
  const permitted = /CapPrm:\s*([0-9a-f]+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
  return BigInt(`0x${permitted}`);
}
