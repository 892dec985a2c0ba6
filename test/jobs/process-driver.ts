/**
 * Tasks as plain processes that outlive their server, as isolated ones do: what is known of them is in files, so that
 * the next life of a killed server can end them, and they end by themselves when their lease is over.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Driver } from "../../src/node/driver.ts";
import type { Observed, WorkloadSpec } from "../../src/node/workload.ts";
import { FakeMachine, fakeDriver } from "../fake-driver.ts";

const LOOK_MS = 10;

/**
 * Says its pid before it looks whether it was ended already: whoever ends it does both the other way round. The
 * watch ends the whole group at the time that the file's date says.
 */
const WRAPPER = `echo $$ > "$TASK_DIR/pid.part"; mv "$TASK_DIR/pid.part" "$TASK_DIR/pid"
over() { [ "$(date +%s%3N)" -ge "$(stat -c %.3Y "$TASK_DIR/ends-at" | tr -d .)" ]; }
if [ -e "$TASK_DIR/ended" ] || over; then exit 1; fi
(while sleep 0.3; do if over; then kill -9 -$$; fi; done) & watch=$!
"$@"; echo $? > "$TASK_DIR/exit.part"; mv "$TASK_DIR/exit.part" "$TASK_DIR/exit"; kill -9 $watch`;

export function processDriver(dir: string): Driver {
  const at = (uid: string, file: string): string => join(dir, uid, file);
  const pidOf = (uid: string): number | null =>
    existsSync(at(uid, "pid")) ? Number(readFileSync(at(uid, "pid"), "utf8")) : null;
  const runs = (uid: string): boolean => {
    const pid = pidOf(uid);
    return pid !== null && !existsSync(at(uid, "exit")) && isThere(pid);
  };
  const observed = (uid: string): Observed => ({
    uid,
    node: "processes",
    state: runs(uid) ? "running" : "exited",
    grade: "none",
    endpoint: { kind: "unix", node: "processes", dir },
    limits: { memoryMb: 1, cpus: 1 },
    mounts: [],
    createdAt: new Date(0).toISOString(),
    pooled: false,
    oom: false,
    ...(existsSync(at(uid, "exit")) ? { exitCode: Number(readFileSync(at(uid, "exit"), "utf8")) } : {}),
  });
  const setEnd = (uid: string, endsAtMs: number): void => {
    if (!existsSync(at(uid, "ends-at"))) writeFileSync(at(uid, "ends-at"), "");
    utimesSync(at(uid, "ends-at"), endsAtMs / 1000, endsAtMs / 1000);
  };

  return {
    ...fakeDriver(new FakeMachine()),
    async create(spec: WorkloadSpec) {
      mkdirSync(join(dir, spec.uid), { recursive: true });
      setEnd(spec.uid, spec.exec?.endsAtMs ?? Number.POSITIVE_INFINITY);
      const env = { PATH: process.env.PATH, ...spec.env, TASK_DIR: join(dir, spec.uid) };
      spawn("sh", ["-c", WRAPPER, "sh", ...(spec.exec?.argv ?? [])], { detached: true, stdio: "ignore", env }).unref();
      while (pidOf(spec.uid) === null) await delay(LOOK_MS);
      return observed(spec.uid);
    },
    observe: async (uid) => (existsSync(join(dir, uid)) ? observed(uid) : null),
    async prolong(uid, endsAtMs) {
      if (existsSync(join(dir, uid))) setEnd(uid, endsAtMs);
    },
    async waitExit(uid, { signal } = {}) {
      while (runs(uid)) {
        signal?.throwIfAborted();
        await delay(LOOK_MS);
      }
      return existsSync(at(uid, "ended")) ? null : observed(uid);
    },
    async destroy(uid) {
      mkdirSync(join(dir, uid), { recursive: true });
      writeFileSync(at(uid, "ended"), "");
      const pid = pidOf(uid);
      if (pid === null) return;
      signalGroup(pid, "SIGKILL");
      while (groupLives(pid)) await delay(LOOK_MS);
      // No longer one that a test could kill: its number may be somebody else's by now.
      renameSync(at(uid, "pid"), at(uid, "pid.gone"));
    },
  };
}

/** Groups of the tasks that run now, to be killed by a test. */
export const runningTasks = (dir: string): number[] =>
  readdirSync(dir).flatMap((uid) => {
    const file = join(dir, uid, "pid");
    if (!existsSync(file) || existsSync(join(dir, uid, "exit"))) return [];
    const pid = Number(readFileSync(file, "utf8"));
    return groupLives(pid) ? [pid] : [];
  });

/** A process whose server was killed may stay a zombie until somebody collects it: it holds nothing any more. */
const groupLives = (group: number): boolean =>
  signalGroup(group, 0) &&
  readdirSync("/proc").some((pid) => {
    const [state, , ofGroup] = /^\d+$/.test(pid) ? statOf(pid) : [];
    return Number(ofGroup) === group && state !== "Z" && state !== "X";
  });

const isThere = (pid: number): boolean => {
  const [state] = statOf(String(pid));
  return state !== undefined && state !== "Z" && state !== "X";
};

function statOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ");
  } catch {
    return [];
  }
}

/** false: all of it has ended. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}
