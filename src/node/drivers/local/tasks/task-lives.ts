/**
 * Tasks without a daemon have nobody inside who could wait for the next server, and their queue starts them anew. So a
 * server that opens ends what its earlier life has left. What they wrote can still be read until somebody destroys them,
 * or the life after this one begins.
 */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { LogTag } from "../../../../contract/log-line.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import { type CgroupHost, removeCgroup } from "../machine/cgroup.ts";
import { signal } from "../machine/process-tree.ts";
import { TASK_FILES } from "./task-program.ts";

/** What the control groups of tasks are called; the rest is the slot. */
export const TASK_GROUPS = "task-";
/** What their processes are called, as long as they are not the command itself. */
export const TASK_PROCESS = "berth-tasks";
const LEFT = "left-";
const END_LOOK_MS = 2;
/** Killed processes are gone in milliseconds unless the kernel holds them in I/O. */
const END_WAIT_MS = 20_000;

export interface TaskNote {
  uid: string;
  log?: LogTag;
}

/** What a task of an earlier life has left: what it wrote. */
export interface LeftTask {
  note: TaskNote;
  dir: string;
}

/** Ends all tasks of earlier lives; answers those that had not ended. `dir` is that of all lives. */
export async function takeOverTasks(dir: string, cgroups: CgroupHost): Promise<LeftTask[]> {
  await endProcesses(dir);
  await removeGroups(cgroups);
  const lives = existsSync(dir) ? readdirSync(dir) : [];
  const left: LeftTask[] = [];
  for (const life of lives) {
    if (life.startsWith(LEFT)) await removeTree(join(dir, life));
    else left.push(...(await keepNotes(dir, life)));
  }
  return left;
}

async function keepNotes(dir: string, life: string): Promise<LeftTask[]> {
  const kept = join(dir, `${LEFT}${life}`);
  renameSync(join(dir, life), kept);
  const left: LeftTask[] = [];
  for (const name of readdirSync(kept)) {
    const slot = join(kept, name);
    const note = readNote(join(slot, TASK_FILES.note));
    if (note) left.push({ note, dir: slot });
    else await removeTree(slot);
  }
  if (left.length === 0) rmSync(kept, { recursive: true, force: true });
  return left;
}

function readNote(file: string): TaskNote | null {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as TaskNote;
  } catch {
    return null; // absent, emptied at the task's end, or torn by a crash of the machine
  }
}

/** Of each task the watcher and init are found by their arguments; with init everything in its namespace ends. */
async function endProcesses(dir: string): Promise<void> {
  const deadline = Date.now() + END_WAIT_MS;
  for (let left = processesOf(dir); left.length > 0; left = processesOf(dir)) {
    for (const pid of left) signal(pid, "SIGKILL");
    if (Date.now() > deadline) throw new Error("tasks of the server's earlier life do not end");
    await delay(END_LOOK_MS);
  }
}

const processesOf = (dir: string): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && commandOf(name).startsWith(`${TASK_PROCESS}\0${dir}/`))
    .map(Number);

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return ""; // ended in between
  }
}

async function removeGroups({ version, parents }: CgroupHost): Promise<void> {
  const names = new Set<string>();
  for (const parent of Object.values(parents))
    for (const name of existsSync(parent) ? readdirSync(parent) : []) if (name.startsWith(TASK_GROUPS)) names.add(name);
  for (const name of names) {
    const paths = Object.entries(parents).map(([controller, parent]) => [controller, join(parent, name)]);
    await removeCgroup({ version, paths: Object.fromEntries(paths) });
  }
}
