/** Starting a workload's processes, and changing a running one from outside. */
import { existsSync, readFileSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import {
  type DriveMount,
  SANDBOX_FILES,
  SANDBOX_RUN_DIR,
  SANDBOXD_RUNTIME_ENV,
  type SandboxdConfig,
} from "../../../../contract/sandbox-wire.ts";
import { EGRESS_DOOR_PORT, type Exec, type Mount, PIDS_DEFAULT, PLATFORM_DOOR_PORT } from "../../../workload.ts";
import type { Program } from "../calls/program.ts";
import { failureOf, READY_FD, type Report } from "../calls/spawner.ts";
import type { ResolvedImage } from "../images/images.ts";
import { procsFiles } from "../machine/cgroup.ts";
import { CAPABILITIES_MAPPED, identityFor, type Machine, makeWorkloadDirs } from "../machine/machine.ts";
import { writePage } from "../machine/page-file.ts";
import { enterSteps } from "./enter-program.ts";
import { type HostMount, type LaunchPlan, launchSteps } from "./launch-program.ts";
import { processStart, saveRecord, type WorkloadRecord } from "./record.ts";

export interface Launch {
  dir: string;
  record: WorkloadRecord;
  image: ResolvedImage;
  mounts: HostMount[];
  env: Record<string, string>;
  workDir: string;
  exec?: Exec;
  /** The workload has no name server, so the daemon answers for names below localhost. */
  ownNames?: boolean;
}

/** Time from spawn to a listening daemon. Measured 30 ms; the rest is for a machine under heavy load. */
const READY_WAIT_MS = 30_000;
/** Path inside of the folder that only the platform writes. */
const HOST_DIR = `${SANDBOX_RUN_DIR}/host`;
/** Environment of PID 1; processes of the workload get the workload's own. */
const INIT_ENV = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", ...SANDBOXD_RUNTIME_ENV };
const BIN_DIR = `${SANDBOX_RUN_DIR}/bin`;
export const OUTPUT_FILES = { stdout: "stdout.log", stderr: "stderr.log" } as const;

/** Resolves when the daemon inside listens; the record then holds the process. */
export async function launch(
  machine: Machine,
  launching: Launch,
  openDoors: () => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const { dir, record } = launching;
  makeWorkloadDirs(dir, record.parts.length);
  saveRecord(dir, record);
  await openDoors();
  writeConfig(launching, daemonConfig(launching));
  noteEnd(dir, launching.exec);
  const plan = planOf(machine, launching);
  const { pid, watcher } = await ready(machine, launching, (program) => launchSteps(program, plan), signal);
  record.pid = pid;
  record.startTime = processStart(pid) ?? "";
  record.watcher = { pid: watcher, startTime: processStart(watcher) ?? "" };
  record.phase = "ready";
  saveRecord(dir, record);
}

/**
 * Writes the configuration. A prepared workload also gets an empty claim file, which is cheaper to fill than to create.
 */
export function writeConfig({ dir, record }: Launch, config: SandboxdConfig): void {
  writeFileSync(join(dir, "host", SANDBOX_FILES.config), JSON.stringify(config));
  if (record.pooled) writePage(join(dir, "host", SANDBOX_FILES.claim), "");
}

/** Writes the end time before any process starts, so that the command never runs without it. */
export function noteEnd(dir: string, exec: Exec | undefined): void {
  if (exec?.endsAtMs === undefined) return;
  writeFileSync(join(dir, "host", SANDBOX_FILES.endsAt), "");
  setEnd(dir, exec.endsAtMs);
}

export const setEnd = (dir: string, endsAtMs: number): void =>
  utimesSync(join(dir, "host", SANDBOX_FILES.endsAt), endsAtMs / 1000, endsAtMs / 1000);

/**
 * Added to the memory limit per process. The daemon's runtime reserves 2 GB of address space for code, which the kernel
 * counts, and exits at once unless about 150 MB more are available.
 */
export const RESERVED_MB = 2560;

function planOf(machine: Machine, { dir, record, mounts }: Launch): LaunchPlan {
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
    capabilities: machine.grade === "contained" ? [] : CAPABILITIES_MAPPED,
    seccomp: machine.seccomp,
    argv: [`${BIN_DIR}/sandboxd`, "init", "--config", `${HOST_DIR}/${SANDBOX_FILES.config}`],
    env: Object.entries(INIT_ENV).map(([name, value]) => `${name}=${value}`),
  };
}

function daemonConfig({ record, image, env, workDir, exec, ownNames }: Launch): SandboxdConfig {
  const doors = [{ listen: `127.0.0.1:${PLATFORM_DOOR_PORT}`, socket: `${HOST_DIR}/${SANDBOX_FILES.platform}` }];
  if (record.network === "outbound") {
    doors.push({ listen: `127.0.0.1:${EGRESS_DOOR_PORT}`, socket: `${HOST_DIR}/${EGRESS_SOCKET}` });
  }
  const output = {
    stdout: `${SANDBOX_RUN_DIR}/${OUTPUT_FILES.stdout}`,
    stderr: `${SANDBOX_RUN_DIR}/${OUTPUT_FILES.stderr}`,
  };
  const command = exec && {
    argv: exec.argv.length > 0 ? exec.argv : image.argv,
    ...(exec.builtin ? { builtin: exec.builtin } : {}),
    statusFile: `${SANDBOX_RUN_DIR}/${SANDBOX_FILES.exit}`,
    stdoutFile: output.stdout,
    stderrFile: output.stderr,
    onExit: exec.onExit ?? "exit",
    ...(exec.endsAtMs === undefined ? {} : { endsAtFile: `${HOST_DIR}/${SANDBOX_FILES.endsAt}` }),
  };
  return {
    apiSocket: `${SANDBOX_RUN_DIR}/${SANDBOX_FILES.api}`,
    portSocket: `${SANDBOX_RUN_DIR}/${SANDBOX_FILES.ports}`,
    controlSocket: `${SANDBOX_RUN_DIR}/${SANDBOX_FILES.control}`,
    stateDir: `${SANDBOX_RUN_DIR}/state`,
    workDir,
    env,
    // Root inside can become another user only where ids are mapped.
    ...(image.user && record.grade === "mapped" ? { user: image.user } : {}),
    doors,
    ...(ownNames ? { names: "127.0.0.1:53" } : {}),
    readyFd: READY_FD,
    drivesFile: `${HOST_DIR}/${SANDBOX_FILES.drives}`,
    ...(record.pooled ? { claimFile: `${HOST_DIR}/${SANDBOX_FILES.claim}` } : {}),
    awakeFifo: AWAKE_FIFO,
    upgradeFile: `${BIN_DIR}/sandboxd`,
    processesMax: commandsMax(record.limits.pids ?? PIDS_DEFAULT),
    ...(command ? { exec: command } : { processLogs: output }),
  };
}

/** Processes left to commands. The rest is reserved for the daemon, which exits when it cannot start a thread. */
const commandsMax = (pids: number): number => pids - Math.min(64, Math.ceil(pids / 16));
/** Path at which programs made for such sandboxes look for the FIFO. */
const AWAKE_FIFO = "/uk/libukp/scale_to_zero_disable";
export const EGRESS_SOCKET = "egress.sock";

/** Resolves once the daemon has reported READY. */
async function ready(
  { spawner }: Machine,
  { dir, record }: Launch,
  fill: (program: Program) => void,
  signal?: AbortSignal,
): Promise<{ pid: number; watcher: number }> {
  const limit = AbortSignal.timeout(READY_WAIT_MS);
  const either = signal ? AbortSignal.any([signal, limit]) : limit;
  const enough = ({ pid, ready }: Report): boolean => pid !== null && ready;
  const report = await spawner.start(fill, enough, either).catch((error) => {
    throw limit.aborted ? tooSlow() : error;
  });
  const { pid, watcher, failure } = report;
  // A short command may end before the daemon is ready; its exit is recorded.
  const started = report.ready || (record.command && !failure);
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

/** Writes the answer of GET /drives/mount inside the workload. */
export function saveDrives(dir: string, mounts: Mount[]): void {
  const drives: DriveMount[] = mounts.flatMap(({ source, path, readOnly, name }) =>
    "drive" in source
      ? [
          {
            driveName: name ?? source.drive,
            mountPath: path,
            drivePath: source.path ?? "/",
            readOnly: readOnly ?? false,
          },
        ]
      : [],
  );
  const file = join(dir, "host", SANDBOX_FILES.drives);
  writeFileSync(`${file}.new`, JSON.stringify(drives));
  renameSync(`${file}.new`, file);
}
