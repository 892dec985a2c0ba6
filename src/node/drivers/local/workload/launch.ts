/** Starting a workload's processes, and changing a running one from outside. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import { SANDBOX_FILES, SANDBOX_RUN_DIR, type SandboxdConfig } from "../../../../contract/sandbox-wire.ts";
import { type Exec, PIDS_DEFAULT } from "../../../workload.ts";
import { BIN_DIR, daemonConfig, HOST_DIR, INIT_ARGV, INIT_ENV, noteEnd } from "../../common/daemon-config.ts";
import type { Program } from "../calls/program.ts";
import { failureOf, READY_FD, type Report } from "../calls/spawner.ts";
import { layOutCopy } from "../gvisor/copy.ts";
import { mayWake } from "../gvisor/memory.ts";
import { stepsOf } from "../gvisor/steps.ts";
import type { Vm } from "../gvisor/vm-program.ts";
import type { ResolvedImage } from "../images/images.ts";
import { procsFiles } from "../machine/cgroup.ts";
import { CAPABILITIES_MAPPED, identityFor, isMapped, type Machine, makeWorkloadDirs } from "../machine/machine.ts";
import { writePage } from "../machine/page-file.ts";
import type { RootDisks } from "../storage/root-disks.ts";
import { enterSteps } from "./enter-program.ts";
import { DEVICE_TAKEN, type HostMount, type LaunchPlan } from "./launch-program.ts";
import { BOOT, processStart, saveRecord, type WorkloadRecord } from "./record.ts";

export interface Launch {
  dir: string;
  record: WorkloadRecord;
  image: ResolvedImage;
  mounts: HostMount[];
  env: Record<string, string>;
  workDir: string;
  exec?: Exec;
  disks?: RootDisks | null;
  /** See `SandboxdConfig.generation`. */
  generation?: string;
  /** The workload has no name server, so the daemon answers for names below localhost. */
  ownNames?: boolean;
}

/** Enough to start a workload again as it was. */
export type Relaunch = Pick<Launch, "dir" | "record" | "mounts" | "disks">;

/** Time from spawn to a listening daemon. Measured 30 ms; the rest is for a machine under heavy load. */
const READY_WAIT_MS = 30_000;

/** Resolves when the daemon inside listens; the record then holds the process. */
export async function launch(
  machine: Machine,
  launching: Launch,
  openDoors: () => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const { dir, record } = launching;
  makeWorkloadDirs(dir, record.disk ? 0 : record.parts.length);
  saveRecord(dir, record);
  await openDoors();
  writeConfig(launching, configOf(launching));
  noteEnd(dir, launching.exec);
  await start(machine, launching, "run", isReady, signal);
}

/** Starts a new workload from the memory of another one; resolves when its processes are there. */
export async function launchCopy(
  machine: Machine,
  launching: Launch,
  snapshot: string,
  openDoors: () => Promise<void>,
): Promise<void> {
  const { dir, record } = launching;
  await layOutCopy(snapshot, dir);
  makeWorkloadDirs(dir, record.disk ? 0 : record.parts.length);
  saveRecord(dir, record);
  writeConfig(launching, configOf(launching));
  await relaunch(machine, launching, openDoors);
}

/** Starts a workload from its memory on disk; resolves when its processes are there. */
export async function relaunch(machine: Machine, launching: Relaunch, openDoors: () => Promise<void>): Promise<void> {
  mayWake(launching.dir);
  await openDoors();
  await start(machine, launching, "restore", ({ pid }) => pid !== null);
}

async function start(
  machine: Machine,
  launching: Relaunch,
  mode: Vm["mode"],
  enough: (report: Report) => boolean,
  signal?: AbortSignal,
): Promise<void> {
  const { dir, record } = launching;
  const { pid, watcher } = await withDisk(launching, planOf(machine, launching), (full) =>
    ready(machine, launching, { steps: stepsOf(full, vmOf(machine, record, mode)), enough }, signal),
  );
  record.pid = pid;
  record.startTime = processStart(pid) ?? "";
  record.watcher = { pid: watcher, startTime: processStart(watcher) ?? "" };
  record.phase = "ready";
  record.boot = BOOT;
  saveRecord(dir, record);
}

/** Starts with the disk of the workload, where it has one; again when another program took the loop device first. */
async function withDisk<T>(
  { dir, record, disks }: Relaunch,
  plan: LaunchPlan,
  start: (plan: LaunchPlan) => Promise<T>,
): Promise<T> {
  if (!record.disk) return start(plan);
  if (!disks)
    throw new PlatformError("unavailable", "The files of the workload lie on a disk that cannot be mounted now.");
  await disks.make(dir, record.disk.sizeMb);
  for (let attempt = 1; ; attempt++) {
    const disk = disks.take(dir);
    record.disk.device = `loop${disk.device}`;
    try {
      return await start({ ...plan, disk });
    } catch (error) {
      delete record.disk.device;
      if (!String(error).includes(DEVICE_TAKEN) || attempt === DEVICE_ATTEMPTS) throw error;
    } finally {
      disks.tried(disk);
    }
  }
}

const DEVICE_ATTEMPTS = 50;

/**
 * Writes the configuration. A prepared workload also gets an empty claim file, which is cheaper to fill than to create.
 */
export function writeConfig({ dir, record }: Launch, config: SandboxdConfig): void {
  writeFileSync(join(dir, "host", SANDBOX_FILES.config), JSON.stringify(config));
  if (record.pooled) writePage(join(dir, "host", SANDBOX_FILES.claim), "");
}

/**
 * Added to the memory limit per process. The daemon's runtime reserves 2 GB of address space for code, which the kernel
 * counts, and exits at once unless about 150 MB more are available.
 */
export const RESERVED_MB = 2560;

function planOf(machine: Machine, { dir, record, mounts }: Relaunch): LaunchPlan {
  const { limits } = machine.cgroups;
  return {
    identity: identityFor(machine, record.idBase),
    dir,
    parts: record.parts,
    shared: [
      { dir: join(dir, "run"), at: SANDBOX_RUN_DIR, readOnly: false },
      { dir: join(dir, "host"), at: HOST_DIR, readOnly: true },
      { dir: machine.binDir, at: BIN_DIR, readOnly: true },
    ],
    mounts,
    hostname: record.name,
    cgroups: procsFiles(record.cgroup),
    memoryMb: record.limits.memoryMb,
    ...(limits.includes("memory") ? {} : { dataBytesMax: (record.limits.memoryMb + RESERVED_MB) * 1024 * 1024 }),
    ...(limits.includes("pids") ? {} : { processesMax: record.limits.pids ?? PIDS_DEFAULT }),
    capabilities: record.grade === "contained" ? [] : CAPABILITIES_MAPPED,
    seccomp: machine.seccomp,
    argv: INIT_ARGV,
    env: INIT_ENV,
  };
}

function vmOf({ runsc }: Machine, { grade, id }: WorkloadRecord, mode: Vm["mode"]): Vm | null {
  if (grade !== "vm-like") return null;
  if (runsc === null) throw new PlatformError("unavailable", "The workload runs in gVisor, which is not there now.");
  return { executable: runsc, id, network: "none", mode };
}

/** The daemon's configuration: root inside can become another user only where ids are mapped. */
const configOf = ({ record, image, env, workDir, exec, ownNames, generation }: Launch): SandboxdConfig =>
  daemonConfig({
    network: record.network,
    pids: record.limits.pids,
    env,
    workDir,
    user: isMapped(record.grade) ? image.user : undefined,
    exec,
    imageArgv: image.argv,
    ownNames: ownNames ?? false,
    pooled: record.pooled,
    readyFd: READY_FD,
    generation,
  });

interface Starting {
  steps: (program: Program) => void;
  /** Whether the report says that the workload has started. */
  enough: (report: Report) => boolean;
}

const isReady = ({ pid, ready }: Report): boolean => pid !== null && ready;

/** Resolves once the program has reported enough. */
async function ready(
  { spawner }: Machine,
  { dir, record }: Relaunch,
  { steps, enough }: Starting,
  signal?: AbortSignal,
): Promise<{ pid: number; watcher: number }> {
  const limit = AbortSignal.timeout(READY_WAIT_MS);
  const either = signal ? AbortSignal.any([signal, limit]) : limit;
  const report = await spawner.start(steps, enough, either).catch((error) => {
    throw limit.aborted ? tooSlow() : error;
  });
  const { pid, watcher, failure } = report;
  // A short command may end before the daemon is ready; its exit is recorded.
  const started = enough(report) || (record.command && !failure);
  if (!started || pid === null || watcher === null) {
    throw failureOf("The workload's start", report, tailOf(join(dir, "init.log")));
  }
  return { pid, watcher };
}

const tooSlow = (): PlatformError =>
  new PlatformError("unavailable", "The workload did not become ready in time. Try again.");

function tailOf(file: string): string {
  const text = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  return text === "" ? "it ended without a word" : text.slice(-500);
}

export async function enter(
  machine: Machine,
  record: WorkloadRecord,
  change: { hostname?: string; memoryMb?: number; mounts?: HostMount[]; unmount?: string },
): Promise<void> {
  if (record.grade === "none") return; // a workload without isolation is not in a namespace
  const { hostname, memoryMb, ...more } = change;
  // A server without root can set the host name only from within the workload's user namespace.
  const alone = record.grade !== "user" && Object.keys(more).length === 0;
  if (alone && hostname !== undefined)
    return machine.hostNames.set({ pid: record.pid, name: hostname, ...(memoryMb === undefined ? {} : { memoryMb }) });
  const identity = identityFor(machine, record.idBase);
  await machine.spawner.run("The change of the running workload", (program) =>
    enterSteps(program, { pid: record.pid, identity, ...change }),
  );
}
