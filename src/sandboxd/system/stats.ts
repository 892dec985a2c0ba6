/** What the processes of a workload use together: from its control group where it sees one of its own, else from /proc. */
import { readdirSync, readFileSync } from "node:fs";
import type { SandboxStats } from "../../contract/sandbox-wire.ts";

const GROUP = "/sys/fs/cgroup";
/** Of the clock that /proc counts in; the same on every machine that this daemon runs on. */
const TICK_MS = 10;
const PAGE_BYTES = 4096;

export function statsOf(): SandboxStats {
  const pids = processes();
  const memory = Number(textOf(`${GROUP}/memory.current`));
  const usec = Number(/^usage_usec (\d+)$/m.exec(textOf(`${GROUP}/cpu.stat`) ?? "")?.[1]);
  return {
    memoryBytes: memory > 0 ? memory : sum(pids, residentBytes),
    cpuMs: memory > 0 && usec >= 0 ? Math.floor(usec / 1000) : sum(pids, cpuMs),
    pids: Number(textOf(`${GROUP}/pids.current`)) || pids.length,
  };
}

const processes = (): string[] => readdirSync("/proc").filter((name) => /^\d+$/.test(name));

const sum = (pids: readonly string[], of: (pid: string) => number): number =>
  pids.reduce((total, pid) => total + of(pid), 0);

const residentBytes = (pid: string): number => Number(textOf(`/proc/${pid}/statm`)?.split(" ")[1] ?? 0) * PAGE_BYTES;

function cpuMs(pid: string): number {
  // The name in parentheses may contain anything.
  const fields = textOf(`/proc/${pid}/stat`)?.split(")").at(-1)?.split(" ") ?? [];
  return (Number(fields[12] ?? 0) + Number(fields[13] ?? 0)) * TICK_MS;
}

/** Undefined for a file that is not there, such as that of a process that has just ended. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
