/**
 * Spawns children with a raised OOM score and a process limit, so that the kernel kills a child before the daemon and
 * the daemon can still fork when the children cannot. A child inherits both at fork, so the daemon sets them on itself
 * for the duration of the spawn.
 */
import { openSync, readFileSync, writeSync } from "node:fs";
import { type Child, type SpawnOptions, spawn } from "../bun.ts";
import { withProcessLimit } from "../libc.ts";
import type { Environment } from "./environment.ts";

const FILE = "/proc/self/oom_score_adj";
const CHILD_SCORE = 500;

let own: { fd: number; score: string } | null | undefined;

export function spawnExpendable({ processesMax }: Environment, argv: string[], options: SpawnOptions): Child {
  if (own === undefined) own = openOwn();
  if (own) writeSync(own.fd, String(CHILD_SCORE));
  try {
    if (processesMax === undefined) return spawn(argv, options);
    return withProcessLimit(processesMax, () => spawn(argv, options));
  } finally {
    if (own) writeSync(own.fd, own.score);
  }
}

/**
 * The daemon's OOM score file. Null when the score cannot be raised for children: /proc is missing or read-only, or the
 * daemon's own score is already as high, as in some pods, and could not be lowered again.
 */
function openOwn(): { fd: number; score: string } | null {
  try {
    const score = readFileSync(FILE, "utf8").trim();
    return Number(score) < CHILD_SCORE ? { fd: openSync(FILE, "w"), score } : null;
  } catch {
    return null;
  }
}
