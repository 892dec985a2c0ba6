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
import { findRunsc } from "../gvisor/runsc.ts";
import { stepsOf } from "../gvisor/steps.ts";
import type { ResolvedImage } from "../images/images.ts";
import { HostNames } from "../workload/host-names.ts";
import type { Identity, LaunchPlan } from "../workload/launch-program.ts";
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
  /** Path of runsc where grade `vm-like` works; its workloads are not among those of `grade`. */
  runsc: string | null;
  /** Null where the node may map no ids. */
  ids: UserIds | null;
  ownCapabilities: bigint;
}

/** What root inside may do to its own files and processes. Without effect outside the workload's user namespace. */
export const CAPABILITIES_MAPPED: number[] = Object.values(CAP);

export interface MachineChoice {
  /** The only grade to try. */
  only?: Grade | undefined;
  /** Path of runsc; default: where programs usually are. */
  runsc?: string | undefined;
}

export async function openMachine(
  dir: string,
  sandboxd: string,
  image: ResolvedImage,
  cgroups: CgroupHost,
  { only, runsc }: MachineChoice = {},
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
    runsc: null,
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
  await tryVm(machine, image, runsc);
  if (only !== undefined) machine.missing.push(`The operator chose isolation grade ${only}.`);
  for (const limit of ["memory", "cpu", "pids"] as const) {
    if (!cgroups.limits.includes(limit)) machine.missing.push(`No control group can limit ${limit} here.`);
  }
  return machine;
}

const TRIAL_WAIT_MS = 10_000;
const LADDER: Grade[] = ["mapped", "contained", "user"];

/** Every grade that workloads of this machine can have, strongest first. */
export const gradesOf = ({ grade, runsc }: Pick<Machine, "grade" | "runsc">): Grade[] =>
  runsc === null ? [grade] : ["vm-like", grade];

/** Whether root inside is an unprivileged user outside. */
export const isMapped = (grade: Grade): boolean => grade === "mapped" || grade === "vm-like";

/** First id of a workload's range; null where ids are not mapped. */
export const idBaseOf = ({ grade, ids }: Machine, slot: number): number | null =>
  grade === "mapped" && ids ? ids.ofSlot(slot) : null;

export function identityFor(machine: Machine, idBase: number | null): Identity {
  if (machine.grade === "user") return { kind: "user", uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  if (idBase === null) return { kind: "contained" };
  return { kind: "mapped", idBase, ownCapabilities: machine.ownCapabilities };
}

/** Finds whether workloads can run in gVisor. A machine without runsc lacks nothing that its operator installed. */
async function tryVm(machine: Machine, image: ResolvedImage, path?: string): Promise<void> {
  const executable = findRunsc(path);
  if (executable === null) {
    if (path !== undefined) machine.missing.push(noVm(`there is no program ${path}.`));
    return;
  }
  const failure = machine.grade === "mapped" ? await tryGrade(machine, "vm-like", image, executable) : NEEDS_MAPPED;
  if (failure === null) machine.runsc = executable;
  else machine.missing.push(noVm(failure));
}

const NEEDS_MAPPED = "it needs what grade mapped needs.";
const noVm = (why: string): string => `Isolation grade vm-like does not work here: ${why}`;

/** Null when the grade works; otherwise the step that failed. */
async function tryGrade(machine: Machine, grade: Grade, image: ResolvedImage, runsc?: string): Promise<string | null> {
  const root = process.getuid?.() === 0;
  if (grade !== "user" && !root) return "the server does not run as root.";
  if (grade === "user" && root) return "the server runs as root.";
  const dir = mkdtempSync(join(machine.spawner.tempDir, "trial-"));
  makeWorkloadDirs(dir, image.parts.length);
  const plan: LaunchPlan = {
    identity: identityFor({ ...machine, grade }, isMapped(grade) ? (machine.ids?.trial ?? null) : null),
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
    const steps = stepsOf(
      plan,
      runsc === undefined ? null : { executable: runsc, id: "trial", network: "none", mode: "run" },
    );
    const report = await machine.spawner.start(steps, () => false, AbortSignal.timeout(TRIAL_WAIT_MS));
    if (report.failure) return failureOf("a trial", report, "").message;
    // The exit file is written a moment after the last reporting process has ended.
    for (let waitedMs = 0; !readExit(dir) && waitedMs < TRIAL_WAIT_MS; waitedMs++) await delay(1);
    const exit = readExit(dir);
    return exit?.exitCode === 0 ? null : `a trial workload ended with ${JSON.stringify(exit)}.${lastWords(dir)}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await removeTree(dir);
  }
}

/** What the first process wrote last. */
function lastWords(dir: string): string {
  const said = readFileSync(join(dir, "init.log"), "utf8").trim().split("\n").at(-1) ?? "";
  return said === "" ? "" : ` ${said.slice(-300)}`;
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
