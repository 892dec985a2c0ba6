/** What a sandbox uses at this moment, as E2B's clients read it: a list with one measurement. */
import { readFileSync, statfsSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import type { Call } from "../http/call.ts";
import { sendJson } from "../http/send.ts";
import { statsOf } from "../system/stats.ts";

/** Time over which the use of the processor is measured. */
const MEASURED_MS = 100;
const GROUP = "/sys/fs/cgroup";

export async function getMetrics({ res }: Call): Promise<void> {
  const before = { cpuMs: statsOf().cpuMs, atMs: performance.now() };
  await pause(MEASURED_MS);
  const { cpuMs, memoryBytes } = statsOf();
  const elapsedMs = performance.now() - before.atMs;
  const { bsize, blocks, bavail } = statfsSync("/");
  const now = new Date();
  sendJson(res, 200, [
    {
      timestamp: now.toISOString(),
      timestampUnix: Math.floor(now.getTime() / 1000),
      cpuCount: cores(),
      cpuUsedPct: Math.round(((cpuMs - before.cpuMs) / elapsedMs) * 1000) / 10,
      memUsed: memoryBytes,
      memTotal: numberIn("memory.max") ?? totalmem(),
      memCache: Number(/^file (\d+)$/m.exec(textIn("memory.stat"))?.[1] ?? 0),
      diskUsed: bsize * (blocks - bavail),
      diskTotal: bsize * blocks,
    },
  ]);
}

/** As the sandbox's limit of processor time says, or the machine's. */
function cores(): number {
  const [quota, period] = textIn("cpu.max").split(" ").map(Number);
  return quota && period ? Math.max(1, Math.round(quota / period)) : availableParallelism();
}

function numberIn(file: string): number | undefined {
  const value = Number(textIn(file) || Number.NaN);
  return Number.isNaN(value) ? undefined : value;
}

function textIn(file: string): string {
  try {
    return readFileSync(`${GROUP}/${file}`, "utf8").trim();
  } catch {
    return ""; // a sandbox that sees no control group of its own
  }
}
