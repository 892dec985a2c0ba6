/** Whether the machine has room for one more test file. */
import { cpus } from "node:os";
import { setTimeout as delay } from "node:timers/promises";

const LOOK_MS = 2_000;
/** Of two cores nearly one: a file that starts keeps one busy for its first seconds. */
const IDLE_SHARE = 0.4;

/** Looks at the processors for two seconds. */
export async function isIdle(): Promise<boolean> {
  const before = cpuTimes();
  await delay(LOOK_MS);
  const after = cpuTimes();
  return after.idle - before.idle > IDLE_SHARE * (after.all - before.all);
}

/** What all processors together have spent so far, in milliseconds. */
function cpuTimes(): { idle: number; all: number } {
  const times = cpus().map((cpu) => cpu.times);
  const idle = times.reduce((sum, each) => sum + each.idle, 0);
  const busy = times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, 0);
  return { idle, all: idle + busy };
}
