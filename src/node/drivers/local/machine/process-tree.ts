/** The processes of one workload as the host sees them, for machines without usable control groups. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Stats } from "../../../workload.ts";

/**
 * All processes in the first process's pid namespace, or its descendants when it shares the server's namespace. (The
 * daemon's init adopts orphans, so they stay its descendants.)
 */
export function processesBelow(first: number): number[] {
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  const namespace = readLink(`/proc/${first}/ns/pid`);
  if (namespace === "") return [];
  if (namespace !== readLink("/proc/self/ns/pid")) {
    return all.filter((pid) => readLink(`/proc/${pid}/ns/pid`) === namespace);
  }
  const found = new Set([first]);
  const parents = all.map((pid) => ({ pid, parent: parentOf(pid) }));
  for (let before = 0; before < found.size; ) {
    before = found.size;
    for (const { pid, parent } of parents) if (found.has(parent)) found.add(pid);
  }
  return [...found];
}

/** Processes whose arguments contain the text. */
export const processesNaming = (text: string): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && readText(`/proc/${name}/cmdline`).includes(text))
    .map(Number)
    .filter((pid) => pid !== process.pid);

/** Processes may start while the others are signalled; the next round finds them. */
const ROUNDS_MAX = 10;

export function freezeBySignal(first: number, frozen: boolean): void {
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const pids = processesBelow(first).filter((pid) => isStopped(pid) !== frozen);
    if (pids.length === 0) return;
    for (const pid of pids) signal(pid, frozen ? "SIGSTOP" : "SIGCONT");
  }
}

/** Whether the process is stopped by a signal. */
export const isStopped = (pid: number): boolean => /^State:\s+T/m.test(readText(`/proc/${pid}/status`));

/** Whether SIGKILL waits for the process: a frozen process (control groups of version 1) ends when it goes on. */
export const isKilled = (pid: number): boolean =>
  [...readText(`/proc/${pid}/status`).matchAll(/^(?:Sig|Shd)Pnd:\s+([0-9a-f]+)/gm)].some(
    ([, mask = "0"]) => (BigInt(`0x${mask}`) & SIGKILL_BIT) !== 0n,
  );

const SIGKILL_BIT = 1n << 8n;

/** Stops all processes first, so that none starts another meanwhile. */
export function killBelow(first: number): void {
  freezeBySignal(first, true);
  for (const pid of processesBelow(first)) signal(pid, "SIGKILL");
}

const TICKS_PER_SECOND = 100; // as the kernel reports it on every supported architecture

export function processStats(first: number): Stats {
  const stats: Stats = { memoryBytes: 0, cpuMs: 0, pids: 0 };
  for (const pid of processesBelow(first)) {
    const resident = /^VmRSS:\s+(\d+)/m.exec(readText(`/proc/${pid}/status`))?.[1];
    const fields = fieldsOf(pid);
    stats.memoryBytes += Number(resident ?? 0) * 1024;
    stats.cpuMs += ((Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 1000) / TICKS_PER_SECOND;
    stats.pids += 1;
  }
  return stats;
}

/** Fields of /proc/PID/stat behind the command's name: state, parent, ... */
function fieldsOf(pid: number): string[] {
  const stat = readText(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

const parentOf = (pid: number): number => Number(fieldsOf(pid)[1] ?? 0);

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error; // it has ended meanwhile
  }
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ""; // the process has ended, or belongs to another user
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
