/** Holding a workload still by signals, where no control group can: SIGSTOP to each process of its pid namespace. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** New processes may appear while we stop the others; they are found in the next round. */
const ROUNDS_MAX = 10;

export function freezeBySignal(pid: number, frozen: boolean): void {
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const pids = processesOf(pid).filter((each) => isStopped(each) !== frozen);
    if (pids.length === 0) return;
    for (const each of pids) trySignal(each, frozen ? "SIGSTOP" : "SIGCONT");
  }
}

/** Whether the process is held by a signal. */
export const isStopped = (pid: number): boolean => /^State:\s+T/m.test(readText(`/proc/${pid}/status`));

function processesOf(first: number): number[] {
  const namespace = readLink(`/proc/${first}/ns/pid`);
  if (namespace === "") return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => readLink(`/proc/${pid}/ns/pid`) === namespace);
}

function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // ended in between
  }
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ""; // ended, or another user's
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
