/**
 * Children that go before their parent when memory runs out, and leave it some processes when those run out. They have
 * that from their first moment, since what they start in that moment inherits it: the parent takes it on for as long as
 * starting one takes.
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
 * Null where the kernel's own choice stands: /proc is not to be had or read-only, or all of us is to go early anyway, as
 * in some pods, and nobody may take that back.
 */
function openOwn(): { fd: number; score: string } | null {
  try {
    const score = readFileSync(FILE, "utf8").trim();
    return Number(score) < CHILD_SCORE ? { fd: openSync(FILE, "w"), score } : null;
  } catch {
    return null;
  }
}
