/**
 * Control groups, version 1 and 2. One workload has one group (one per controller in version 1); its record holds the
 * paths, so that a later server in another group still finds them.
 *
 * Version 1 groups are made below the server's own group, so limits of the server also limit its workloads. Version 2
 * forbids groups with both processes and children, so there they are made at the top, as Docker does; they then also
 * survive a stop of the service that started them.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Probe } from "../../../driver.ts";
import type { Limits, Stats } from "../../../workload.ts";
import { PIDS_DEFAULT } from "../../../workload.ts";

/** Where groups can be made on this machine. */
export interface CgroupHost {
  version: 0 | 1 | 2;
  /** Controller -> folder; version 2 has only "unified". */
  parents: Record<string, string>;
  limits: Probe["limits"];
  freezer: Probe["freezer"];
}

/** One workload's groups. */
export interface Cgroup {
  version: 0 | 1 | 2;
  paths: Record<string, string>;
}

const V1_CONTROLLERS = ["memory", "pids", "cpu", "cpuacct", "freezer"];
const LIMIT_CONTROLLERS = ["memory", "cpu", "pids"] as const;

export function findCgroups(name: string, proc = "/proc/self"): CgroupHost {
  const mounts = readMounts(`${proc}/mountinfo`);
  const own = readOwnGroups(`${proc}/cgroup`);
  const unified = mounts.find(({ type }) => type === "cgroup2");
  const controllers = unified ? readWords(`${unified.at}/cgroup.controllers`) : [];
  if (unified && controllers.includes("memory")) {
    const parent = `${unified.at}/${name}`;
    if (prepareUnified(unified.at, parent)) {
      const limits = LIMIT_CONTROLLERS.filter((each) => readWords(`${parent}/cgroup.controllers`).includes(each));
      return { version: 2, parents: { unified: parent }, limits, freezer: "cgroup" };
    }
  }
  const parents: Record<string, string> = {};
  for (const controller of V1_CONTROLLERS) {
    const mount = mounts.find(({ type, options }) => type === "cgroup" && options.includes(controller));
    if (!mount) continue;
    const group = own.get(controller) ?? "/";
    const inside = group.startsWith(mount.root) ? group.slice(mount.root === "/" ? 0 : mount.root.length) : "";
    const parent = `${mount.at}${inside === "/" ? "" : inside}/${name}`;
    if (tryMake(parent)) parents[controller] = parent;
  }
  if (unified && !parents.freezer && tryMake(`${unified.at}/${name}`)) parents.unified = `${unified.at}/${name}`;
  const limits = LIMIT_CONTROLLERS.filter((each) => parents[each]);
  const freezer = parents.freezer || parents.unified ? "cgroup" : "signal";
  return { version: Object.keys(parents).length > 0 ? 1 : 0, parents, limits, freezer };
}

export function createCgroup(host: CgroupHost, id: string): Cgroup {
  const paths: Record<string, string> = {};
  for (const [controller, parent] of Object.entries(host.parents)) {
    paths[controller] = `${parent}/${id}`;
    mkdirSync(`${parent}/${id}`, { recursive: true });
  }
  return { version: host.version, paths };
}

export const procsFiles = ({ paths }: Cgroup): string[] => Object.values(paths).map((path) => `${path}/cgroup.procs`);

export function setCgroupLimits({ version, paths }: Cgroup, limits: Limits): void {
  const memory = String(Math.floor(limits.memoryMb * 1024 * 1024));
  const pids = String(limits.pids ?? PIDS_DEFAULT);
  const quotaUs = Math.max(1000, Math.floor(limits.cpus * PERIOD_US)); // the kernel refuses less
  if (version === 2 && paths.unified) {
    writeFileSync(`${paths.unified}/memory.max`, memory);
    tryWrite(`${paths.unified}/memory.swap.max`, "0");
    writeFileSync(`${paths.unified}/pids.max`, pids);
    setQuota(`${paths.unified}/cpu.max`, `${quotaUs} ${PERIOD_US}`, `${paths.unified}/cpu.max.burst`, quotaUs);
    return;
  }
  if (paths.memory) {
    // The swap limit, where swap is counted, must never be below the memory limit, so one of the two orders works.
    const swap = `${paths.memory}/memory.memsw.limit_in_bytes`;
    tryWrite(`${paths.memory}/memory.limit_in_bytes`, memory);
    if (existsSync(swap)) tryWrite(swap, memory);
    writeFileSync(`${paths.memory}/memory.limit_in_bytes`, memory);
  }
  if (paths.pids) writeFileSync(`${paths.pids}/pids.max`, pids);
  if (paths.cpu) setQuota(`${paths.cpu}/cpu.cfs_quota_us`, String(quotaUs), `${paths.cpu}/cpu.cfs_burst_us`, quotaUs);
}

/**
 * A workload that used less than its quota in one period may use that much more in the next ones, up to a whole quota:
 * short commands in a small sandbox then run without a pause, and the average stays the same. The kernel refuses a
 * quota below the burst; older kernels have no burst.
 */
function setQuota(path: string, quota: string, burstPath: string, quotaUs: number): void {
  if (!existsSync(path)) return; // version 2 without the controller
  tryWrite(burstPath, "0");
  writeFileSync(path, quota);
  tryWrite(burstPath, String(quotaUs));
}

const PERIOD_US = 100_000;
/** Longest wait for a state change: a process in disk I/O freezes or ends only when the I/O is done. */
const STATE_WAIT_MS = 30_000;

/** Returns whether a control group could do it; otherwise the caller uses signals. */
export async function freezeCgroup({ paths }: Cgroup, frozen: boolean): Promise<boolean> {
  const { freezer, unified } = paths;
  if (freezer) {
    writeFileSync(`${freezer}/freezer.state`, frozen ? "FROZEN" : "THAWED");
    await until(() => readText(`${freezer}/freezer.state`).trim() === (frozen ? "FROZEN" : "THAWED"));
    return true;
  }
  if (!unified) return false;
  writeFileSync(`${unified}/cgroup.freeze`, frozen ? "1" : "0");
  await until(() => readText(`${unified}/cgroup.events`).includes(`frozen ${frozen ? 1 : 0}`));
  return true;
}

export function isFrozen({ paths }: Cgroup): boolean | null {
  if (paths.freezer) return /^FR/.test(readText(`${paths.freezer}/freezer.state`)); // FROZEN or FREEZING
  if (paths.unified) return readText(`${paths.unified}/cgroup.freeze`).trim() === "1";
  return null;
}

export function cgroupStats({ version, paths }: Cgroup): Partial<Stats> {
  const number = (path: string): number => Number(readText(path).trim() || Number.NaN);
  if (version === 2 && paths.unified) {
    const cpuUs = /usage_usec (\d+)/.exec(readText(`${paths.unified}/cpu.stat`))?.[1];
    return {
      memoryBytes: number(`${paths.unified}/memory.current`),
      pids: number(`${paths.unified}/pids.current`),
      cpuMs: Math.floor(Number(cpuUs ?? 0) / 1000),
    };
  }
  return {
    ...(paths.memory ? { memoryBytes: number(`${paths.memory}/memory.usage_in_bytes`) } : {}),
    ...(paths.pids ? { pids: number(`${paths.pids}/pids.current`) } : {}),
    ...(paths.cpuacct ? { cpuMs: Math.floor(number(`${paths.cpuacct}/cpuacct.usage`) / 1e6) } : {}),
  };
}

/** Bytes of memory that the kernel cannot take back: all but the pages of files. */
export function heldBytes({ version, paths }: Cgroup): number {
  const isUnified = version === 2;
  const dir = isUnified ? paths.unified : paths.memory;
  const used = Number(readText(`${dir}/${isUnified ? "memory.current" : "memory.usage_in_bytes"}`).trim());
  const stat = readText(`${dir}/memory.stat`);
  const prefix = isUnified ? "" : "total_";
  const pages = ["inactive_file", "active_file"].map((name) =>
    Number(new RegExp(`^${prefix}${name} (\\d+)$`, "m").exec(stat)?.[1] ?? 0),
  );
  return Math.max(0, used - pages.reduce((sum, each) => sum + each, 0));
}

/**
 * Takes pages of files away until the group uses at most so many bytes, and answers with the bytes that it then uses.
 * The group has no limit below `bytes` afterwards. Without processes being killed: `memory.high` and version 1's limit
 * only reclaim.
 */
export function reclaimDownTo({ version, paths }: Cgroup, bytes: number): number {
  if (version === 2) {
    tryWrite(`${paths.unified}/memory.high`, String(bytes));
    tryWrite(`${paths.unified}/memory.high`, "max");
    return Number(readText(`${paths.unified}/memory.current`).trim());
  }
  if (!paths.memory || tryWrite(`${paths.memory}/memory.limit_in_bytes`, String(bytes))) return 0;
  return Number(readText(`${paths.memory}/memory.usage_in_bytes`).trim());
}

/** Number of processes killed by the memory limit. */
export function oomKills({ version, paths }: Cgroup): number {
  const file = version === 2 ? `${paths.unified}/memory.events` : `${paths.memory}/memory.oom_control`;
  return Number(/oom_kill (\d+)/.exec(readText(file))?.[1] ?? 0);
}

export const processesIn = ({ paths }: Cgroup): number[] => {
  const [file] = Object.values(paths);
  return file ? readWords(`${file}/cgroup.procs`).map(Number) : [];
};

/** Gives unused memory back to the machine. Without swap, nothing can be reclaimed from processes. */
export async function reclaim({ version, paths }: Cgroup): Promise<void> {
  if (readText("/proc/swaps").trim().split("\n").length < 2) return;
  const file = version === 2 ? `${paths.unified}/memory.reclaim` : `${paths.memory}/memory.force_empty`;
  await writeFile(file, version === 2 ? "1G" : "0").catch(() => {}); // fails when less could be reclaimed
}

/** Removes the groups; the last exiting process may hold them for a moment. */
export async function removeCgroup({ paths }: Cgroup): Promise<void> {
  for (const path of Object.values(paths)) await until(() => tryRemove(path));
}

/** Removes the driver's own group when no workload is left in it. */
export function removeCgroupHost({ parents }: CgroupHost): void {
  for (const parent of Object.values(parents)) tryRemove(parent);
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + STATE_WAIT_MS;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error("a control group did not reach the wanted state in time");
    await delay(1);
  }
}

interface CgroupMount {
  at: string;
  root: string;
  type: string;
  options: string[];
}

function readMounts(file: string): CgroupMount[] {
  const mounts: CgroupMount[] = [];
  for (const line of readText(file).split("\n")) {
    const [left = "", right = ""] = line.split(" - ");
    const [, , , root = "/", at = ""] = left.split(" ");
    const [type = "", , options = ""] = right.split(" ");
    if (type.startsWith("cgroup")) mounts.push({ at, root, type, options: options.split(",") });
  }
  return mounts;
}

function readOwnGroups(file: string): Map<string, string> {
  const groups = new Map<string, string>();
  for (const line of readText(file).split("\n")) {
    const [, controllers = "", path = "/"] = line.split(":");
    for (const controller of controllers.split(",")) groups.set(controller, path);
  }
  return groups;
}

/** Makes the parent group with the controllers handed down. */
function prepareUnified(root: string, parent: string): boolean {
  const enable = "+memory +pids +cpu";
  if (
    !readWords(`${root}/cgroup.subtree_control`).includes("memory") &&
    !tryWrite(`${root}/cgroup.subtree_control`, enable)
  ) {
    // In a container the visible root group holds processes, so it cannot enable controllers for its children.
    if (!tryMake(`${root}/init`)) return false;
    for (const pid of readWords(`${root}/cgroup.procs`)) tryWrite(`${root}/init/cgroup.procs`, pid);
    if (!tryWrite(`${root}/cgroup.subtree_control`, enable)) return false;
  }
  return tryMake(parent) && tryWrite(`${parent}/cgroup.subtree_control`, enable);
}

function tryMake(path: string): boolean {
  try {
    mkdirSync(path, { recursive: true });
    return true;
  } catch {
    return false; // not permitted; the probe then reports that limits are missing
  }
}

function tryWrite(path: string, value: string): boolean {
  try {
    writeFileSync(path, value);
    return true;
  } catch {
    return false; // absent or refused on this kernel; the caller decides whether that matters
  }
}

function tryRemove(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // the group is gone, or this kernel has no such file
  }
}

const readWords = (path: string): string[] =>
  readText(path)
    .split(/\s+/)
    .filter((word) => word !== "");
