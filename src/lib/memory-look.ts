/** Whether the memory of this machine runs short, as the kernel tells it. */
import { readFileSync } from "node:fs";

export interface MemoryLook {
  availableBytes: number;
  /** Percent of the last ten seconds in which some process waited for memory; 0 where the kernel does not count that. */
  stalledPercent: number;
  /** Pages of frozen processes can leave memory. */
  swaps: boolean;
}

/** Null on a machine that does not tell. */
export function lookAtMemory(proc = "/proc"): MemoryLook | null {
  const available = /^MemAvailable:\s+(\d+) kB/m.exec(read(`${proc}/meminfo`))?.[1];
  if (available === undefined) return null;
  const stalled = /^some avg10=([\d.]+)/m.exec(read(`${proc}/pressure/memory`))?.[1];
  return {
    availableBytes: Number(available) * 1024,
    stalledPercent: Number(stalled ?? 0),
    swaps: read(`${proc}/swaps`).trim().split("\n").length > 1,
  };
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // another system, or a kernel without this file
  }
}
