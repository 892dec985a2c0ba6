import { execFile } from "node:child_process";
import { lstatSync } from "node:fs";
import { opendir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Most entries to remove in this process (a project with its packages). Beyond that `rm` uses its own memory. */
const HERE_MAX = 20_000;
/** Deepest nesting to remove in this process: each level holds an open file descriptor. */
const DEPTH_MAX = 64;
/** Concurrent unlinks: disks are faster with several requests at a time. */
const AT_ONCE = 32;

/**
 * Removes files that a workload wrote: millions of them, with any name, at any depth. The first entries are removed
 * here, which is faster than starting a program. The rest is left to `rm`, which uses its own memory and handles paths
 * that are too long for the kernel. Without root, folders that deny access to their owner are made accessible first.
 */
export async function removeTree(dir: string): Promise<void> {
  const stat = lstatSync(dir, { throwIfNoEntry: false });
  if (!stat) return;
  if (!stat.isDirectory()) return unlink(dir);
  if (process.getuid?.() !== 0) await run("chmod", ["-R", "u+rwx", dir]).catch(() => {}); // `rm` reports errors
  const removed = await removeHere(dir, { entries: HERE_MAX }).catch(() => false);
  if (!removed) await run("rm", ["-rf", "--", dir]);
}

/** Returns false when there are too many entries or they are too deep. */
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
