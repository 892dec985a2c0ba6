import { execFile } from "node:child_process";
import { lstatSync } from "node:fs";
import { opendir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A project with its packages; more is left to another process, whose memory it is then. */
const HERE_MAX = 20_000;
/** Each folder on the way is an open descriptor of this process. */
const DEPTH_MAX = 64;
/** Disks are quicker when they are asked for several at a time. */
const AT_ONCE = 32;

/**
 * Removes files that somebody else wrote: millions of them, with any name, at any depth. The first are removed here,
 * which is quicker than to start a program; what is left by `rm`, which needs neither this process's memory nor paths
 * that the kernel takes. Without root, folders that forbid even their owner to look in are opened first.
 */
export async function removeTree(dir: string): Promise<void> {
  const stat = lstatSync(dir, { throwIfNoEntry: false });
  if (!stat) return;
  if (!stat.isDirectory()) return unlink(dir);
  if (process.getuid?.() !== 0) await run("chmod", ["-R", "u+rwx", dir]).catch(() => {}); // rm tells
  const removed = await removeHere(dir, { entries: HERE_MAX }).catch(() => false);
  if (!removed) await run("rm", ["-rf", "--", dir]);
}

/** False: there are too many, or they lie too deep. */
async function removeHere(dir: string, left: { entries: number }, depth = 0): Promise<boolean> {
  if (depth > DEPTH_MAX) return false;
  const files: string[] = [];
  const unlinkAll = (): Promise<unknown> => Promise.all(files.splice(0).map((path) => unlink(path)));
  for await (const entry of await opendir(dir)) {
    if (left.entries-- === 0) return false;
    const path = join(dir, entry.name);
    if (!entry.isDirectory()) files.push(path);
    else if (!(await removeHere(path, left, depth + 1))) return false;
    if (files.length >= AT_ONCE) await unlinkAll();
  }
  await unlinkAll();
  await rmdir(dir);
  return true;
}
