/** What the driver remembers of a workload: one file in its folder, so that a later server can take it over. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { LogTag } from "../../../../contract/log-line.ts";
import type { Grade, Limits, Mount, NetworkClass } from "../../../driver.ts";
import type { Cgroup } from "../machine/cgroup.ts";
import { writePage } from "../machine/page-file.ts";
import type { RootPart } from "./launch-program.ts";

export interface WorkloadRecord {
  /** Raised when the meaning of a field changes; a record of another format is not adopted. */
  format: typeof RECORD_FORMAT;
  /** Name of its folder and control groups; given at launch, long before a pooled one belongs to somebody. */
  id: string;
  /** null while it waits in the pool. */
  uid: string | null;
  /** "starting" until it was ready once: found so by a later server, it is debris. */
  phase: "starting" | "ready";
  name: string;
  image: string;
  imageDigest: string;
  /** The layers it stands on. */
  parts: RootPart[];
  network: NetworkClass;
  limits: Limits;
  mounts: Mount[];
  /** Whether a foreground command decides its end. */
  command: boolean;
  grade: Grade;
  /** Lowest number that was free: its range of user ids and its network address follow from it. */
  slot: number;
  /** First user id of its range outside; null when its ids are not mapped. */
  idBase: number | null;
  cgroup: Cgroup;
  /** Its first process. */
  pid: number;
  /** Together with the pid this names one process for ever; see `processStart`. */
  startTime: string;
  /** Of a task, the first process of its namespace; `pid` is the command itself. */
  init?: number;
  /** Whose log its output goes to; of a task, only when an earlier life of the server has left it. */
  log?: LogTag;
  /** The process outside that waits for the first one and notes its exit. */
  watcher: { pid: number; startTime: string };
  pooled: boolean;
  createdAt: string;
}

export const RECORD_FORMAT = 2;
const FILE = "record.json";

export const saveRecord = (dir: string, record: WorkloadRecord): void =>
  writePage(join(dir, FILE), JSON.stringify(record));

/** Every folder with its record; null where there is none that can be used. */
export function loadRecords(dir: string): { dir: string; id: string; record: WorkloadRecord | null }[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir).map((id) => ({ dir: join(dir, id), id, record: loadRecord(join(dir, id, FILE)) }));
}

function loadRecord(path: string): WorkloadRecord | null {
  try {
    const record = JSON.parse(readFileSync(path, "utf8")) as WorkloadRecord;
    return record.format === RECORD_FORMAT ? record : null;
  } catch {
    return null; // absent or half a machine crash: either way there is nothing to adopt
  }
}

/** When the process started, in clock ticks since boot; null when there is none, or only its remains. */
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

export interface Exit {
  exitCode?: number;
  exitSignal?: number;
}

/** The wait status that the watcher left; null when it did not, as after being killed itself. */
export function readExit(dir: string): Exit | null {
  const bytes = readBytes(join(dir, "exit"));
  if (!bytes || bytes.length < 4) return null;
  const status = bytes.readUInt32LE(0);
  return (status & 0x7f) === 0 ? { exitCode: (status >> 8) & 0xff } : { exitSignal: status & 0x7f };
}

/**
 * The first process of a start that was interrupted before its record knew it, by the note that the watcher wrote. The
 * pid may be another's by now, so the process must still look like ours.
 */
export function findProcess(dir: string): { pid: number; startTime: string } | null {
  const bytes = readBytes(join(dir, "pid"));
  if (!bytes || bytes.length < 8) return null;
  const pid = Number(bytes.readBigInt64LE(0));
  const startTime = processStart(pid);
  const command = readBytes(`/proc/${pid}/cmdline`)?.toString() ?? "";
  return startTime !== null && /^berth-spawner\0|sandboxd\0init\0/.test(command) ? { pid, startTime } : null;
}

function readBytes(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch {
    return null;
  }
}
