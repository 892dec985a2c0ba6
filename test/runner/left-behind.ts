/**
 * What a test file left on the machine when its process had ended: processes of its group or with files in its
 * temporary folder, mounts and files there. All of it is told and removed, so that the next file finds a clean machine.
 */
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const LOOK_MS = 100;
const ENTRIES_SHOWN = 20;

/** `graceMs`: whatever was told to end may take a moment on a busy machine. */
export async function takeLeftBehind(group: number, temporary: string, graceMs: number): Promise<string[]> {
  // The number of a group that has no member left may be given to another process, such as the next test file.
  let members = processesOf({ group });
  const others = (): number[] => processesOf({ folder: temporary });
  let processes = [...new Set([...members, ...others()])];
  for (let waited = 0; processes.length > 0 && waited < graceMs; waited += LOOK_MS) {
    await delay(LOOK_MS);
    members = members.length > 0 ? processesOf({ group }) : [];
    processes = [...new Set([...members, ...others()])];
  }
  const told = processes.map((pid) => `process ${pid}: ${commandOf(pid)}`);
  for (const pid of processes) endProcess(pid);
  const mounts = mountsBelow(temporary);
  for (const path of mounts.toReversed()) spawnSync("umount", ["-l", path]);
  told.push(...mounts.map((path) => `mount ${path}`), ...entriesOf(temporary));
  if (mountsBelow(temporary).length > 0) return [...told, `${temporary} is kept: it has mounts that cannot be removed`];
  const failed = removalError(temporary);
  return failed ? [...told, failed] : told;
}

/** Ends everything that shares the process group of a test file. */
export const endGroup = (group: number): void => quietly(() => process.kill(-group, "SIGKILL"));

export const endProcess = (pid: number): void => quietly(() => process.kill(pid, "SIGKILL"));

/** Processes of a group or session, or with a path of the folder in their command, working folder or own mounts. */
export function processesOf({ group, folder }: { group?: number; folder?: string }): number[] {
  if (!existsSync("/proc/self/stat")) return [];
  const ownMounts = linkOf("/proc/self/ns/mnt");
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && !ended(pid))
    .filter((pid) => {
      const [, , parent, pgrp, session] = statOf(pid);
      if (parent === undefined) return false;
      if (group !== undefined && (Number(pgrp) === group || Number(session) === group)) return true;
      if (folder === undefined) return false;
      if (textOf(`/proc/${pid}/cmdline`).includes(folder) || linkOf(`/proc/${pid}/cwd`).startsWith(folder)) return true;
      return linkOf(`/proc/${pid}/ns/mnt`) !== ownMounts && textOf(`/proc/${pid}/mountinfo`).includes(folder);
    });
}

export const commandOf = (pid: number): string =>
  textOf(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim().slice(0, 300) || `(${statOf(pid)[1] ?? "gone"})`;

/** pid, name, state, parent, group and session; the name may hold spaces and brackets. */
function statOf(pid: number): string[] {
  const text = textOf(`/proc/${pid}/stat`);
  const close = text.lastIndexOf(")");
  if (close < 0) return [];
  const [, parent = "", group = "", session = ""] = text.slice(close + 2).split(" ");
  return [String(pid), text.slice(text.indexOf("(") + 1, close), parent, group, session];
}

/** A process that nobody has waited for yet holds nothing. */
const ended = (pid: number): boolean => /\) [ZX] /.test(textOf(`/proc/${pid}/stat`));

const mountsBelow = (folder: string): string[] =>
  textOf("/proc/self/mountinfo")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${folder}/`));

function entriesOf(folder: string): string[] {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const shown = names.slice(0, ENTRIES_SHOWN).map((name) => {
    const path = join(folder, name);
    return `${lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ? "folder" : "file"} ${path}`;
  });
  return names.length > shown.length ? [...shown, `and ${names.length - shown.length} more`] : shown;
}

function removalError(folder: string): string | null {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
    return null;
  } catch (error) {
    return `${folder} is kept: ${(error as Error).message}`;
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // a process that ended meanwhile, or another user's
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function quietly(work: () => unknown): void {
  try {
    work();
  } catch {
    // It is gone already.
  }
}
