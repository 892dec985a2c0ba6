/**
 * Takes over tasks that an earlier run of the server left. Such tasks have no daemon that could wait for the next
 * server, and their queue starts them anew, so a server ends them when it opens. Their output stays readable until the
 * task is destroyed or the server starts once more.
 */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { LogTag } from "../../../../contract/log-line.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import { type CgroupHost, removeCgroup } from "../machine/cgroup.ts";
import { signal } from "../machine/process-tree.ts";
import { TASK_FILES } from "./task-program.ts";

/** Prefix of the names of tasks' control groups; the slot number follows. */
export const TASK_GROUPS = "task-";
/** Process name of watcher and init (the command has its own). */
export const TASK_PROCESS = "berth-tasks";
const LEFT = "left-";
const END_LOOK_MS = 2;
/** Killed processes are gone in milliseconds unless the kernel holds them in I/O. */
const END_WAIT_MS = 20_000;

export interface TaskNote {
  uid: string;
  log?: LogTag;
}

/** A task of an earlier run of the server, of which only the output is left. */
export interface LeftTask {
  note: TaskNote;
  dir: string;
}

/** Ends all tasks of earlier runs and returns those that had not ended. `dir` holds the folders of all runs. */
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

/** Kills watcher and init of each task, found by their arguments; with init its whole pid namespace ends. */
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
    return ""; // it has ended meanwhile
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
