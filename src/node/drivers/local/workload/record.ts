/** The driver's record of a workload: one file in its folder, so that a later server can adopt it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { LogTag } from "../../../../contract/log-line.ts";
import type { Grade, Limits, Mount, NetworkClass } from "../../../workload.ts";
import type { Cgroup } from "../machine/cgroup.ts";
import { writePage } from "../machine/page-file.ts";
import type { RootPart } from "./launch-program.ts";

export interface WorkloadRecord {
  /** Raised when the meaning of a field changes; a record of another format is not adopted. */
  format: typeof RECORD_FORMAT;
  /** Name of its folder and control groups. Assigned at launch, before a pooled workload has an owner. */
  id: string;
  /** Null while it waits in the pool. */
  uid: string | null;
  /** "starting" until it was ready once. A later server removes a workload that it finds in this phase. */
  phase: "starting" | "ready";
  name: string;
  image: string;
  imageDigest: string;
  /** The layers of its root. */
  parts: RootPart[];
  network: NetworkClass;
  limits: Limits;
  mounts: Mount[];
  /** Whether the end of a foreground command ends the workload. */
  command: boolean;
  grade: Grade;
  /** Lowest free number; determines its range of user ids and its network address. */
  slot: number;
  /** First host user id of its range; null when its ids are not mapped. */
  idBase: number | null;
  cgroup: Cgroup;
  /** The run of the machine that its processes belong to; absent in records of older versions. */
  boot?: string;
  /** Its root is a file system of this size; absent where roots have none. `device`: its block device while it runs. */
  disk?: { sizeMb: number; device?: string };
  /** A call of the platform ended it, and its files were kept. */
  ended?: boolean;
  /** See `Observed.otherBase`. */
  otherBase?: boolean;
  /** Its processes and memory lie in the folder `memory`, and nothing of it runs. */
  hibernated?: true;
  /** Pid of its first process. */
  pid: number;
  /** Identifies the process together with the pid; see `processStart`. */
  startTime: string;
  /** For a task: the first process of its namespace; `pid` is the command itself. */
  init?: number;
  /** The log that its output goes to; for a task only when an earlier run of the server left it. */
  log?: LogTag;
  /** The process outside that waits for the first one and records its exit. */
  watcher: { pid: number; startTime: string };
  pooled: boolean;
  createdAt: string;
}

export const RECORD_FORMAT = 2;
/** The slot of a workload that has ended. */
export const NO_SLOT = -1;
const FILE = "record.json";

export const saveRecord = (dir: string, record: WorkloadRecord): void =>
  writePage(join(dir, FILE), JSON.stringify(record));

/** Every workload folder with its record; null when the record is missing or unusable. */
export function loadRecords(dir: string): { dir: string; id: string; record: WorkloadRecord | null }[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir).map((id) => ({ dir: join(dir, id), id, record: loadRecord(join(dir, id, FILE)) }));
}

function loadRecord(path: string): WorkloadRecord | null {
  try {
    const record = JSON.parse(readFileSync(path, "utf8")) as WorkloadRecord;
    return record.format === RECORD_FORMAT ? record : null;
  } catch {
    return null; // absent, or torn by a crash of the machine: nothing to adopt
  }
}

/** When the process started, in clock ticks since boot; null when it does not exist or is a zombie. */
export function processStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? null : (rest[18] ?? null);
  } catch {
    return null;
  }
}

export const isAlive = ({ pid, startTime }: { pid: number; startTime: string }): boolean =>
  pid > 0 && processStart(pid) === startTime;

/** Identifies this run of the machine: pids and start times of another run mean other processes. */
export const BOOT = readBytes("/proc/sys/kernel/random/boot_id")?.toString().trim() ?? "";

export const isOfThisBoot = ({ boot = BOOT }: WorkloadRecord): boolean => boot === BOOT;

/** Whether its first process is there. */
export const isRunning = (record: WorkloadRecord): boolean => isOfThisBoot(record) && isAlive(record);

export interface Exit {
  exitCode?: number;
  exitSignal?: number;
}

/** The wait status that the watcher wrote; null when there is none, as after the watcher was killed. */
export function readExit(dir: string): Exit | null {
  const bytes = readBytes(join(dir, "exit"));
  if (!bytes || bytes.length < 4) return null;
  const status = bytes.readUInt32LE(0);
  return (status & 0x7f) === 0 ? { exitCode: (status >> 8) & 0xff } : { exitSignal: status & 0x7f };
}

/**
 * The first process of an interrupted start, from the pid file that the watcher wrote. Another process may have that
 * pid by now, so its identity is checked.
 */
export function findProcess(dir: string): { pid: number; startTime: string } | null {
  const bytes = readBytes(join(dir, "pid"));
  if (!bytes || bytes.length < 8) return null;
  const pid = Number(bytes.readBigInt64LE(0));
  const startTime = processStart(pid);
  const command = readBytes(`/proc/${pid}/cmdline`)?.toString() ?? "";
  return startTime !== null && /^berth-spawner\0|^runsc\0|sandboxd\0init\0/.test(command) ? { pid, startTime } : null;
}

function readBytes(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null;
  }
}
