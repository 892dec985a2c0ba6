/** A proxy under test: its ports, and what the kernel says about its processes. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

export interface Subject {
  name: string;
  port: number;
  /** Processes whose CPU time and memory count. */
  pids(): number[];
  /** What is alive in its heap, after a collection. */
  heapMb?(): Promise<number>;
  /** Asks the process to exchange its routes all the time, or to stop that. */
  churn?(isOn: boolean): void;
}

/** Linux counts CPU time in hundredths of a second. */
export const TICK_MICROS = 10_000;

export function cpuTicks({ pids }: Pick<Subject, "pids">): number {
  return pids().reduce((sum, pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return sum + Number(fields[11]) + Number(fields[12]);
  }, 0);
}

export function childrenOf(parent: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[1]) === parent;
      } catch {
        return false; // it ended while we looked
      }
    });
}

export function memoryMb(pid: number, field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
}

export const rssMb = ({ pids }: Pick<Subject, "pids">): number =>
  pids().reduce((sum, pid) => sum + memoryMb(pid, "VmRSS"), 0);

/** Makes the kernel forget the peak so far. */
export const resetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, "5");

export const middle = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** Interval at which a process under test exchanges a route, when asked to. */
export const CHURN_MS = 20;
