import { execFile } from "node:child_process";
import { lstatSync } from "node:fs";
import { opendir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** About what is below a workload that has written nothing; more is cheaper to leave to another process. */
const FEW_ENTRIES = 200;

/**
 * Removes files that somebody else wrote: millions of them, with any name, at any depth. Few are removed here, which is
 * quicker than to start a program; all others by `rm`, which needs neither this process's memory nor paths that the
 * kernel takes. Without root, folders that forbid even their owner to look in are opened first.
 */
export async function removeTree(dir: string): Promise<void> {
  const stat = lstatSync(dir, { throwIfNoEntry: false });
  if (!stat) return;
  if (!stat.isDirectory()) return unlink(dir);
  if (process.getuid?.() !== 0) await run("chmod", ["-R", "u+rwx", dir]).catch(() => {}); // rm tells
  const removed = await removeFew(dir, { entries: FEW_ENTRIES }).catch(() => false);
  if (!removed) await run("rm", ["-rf", "--", dir]);
}

/** False: there are too many. */
async function removeFew(dir: string, left: { entries: number }): Promise<boolean> {
  for await (const entry of await opendir(dir)) {
    if (left.entries-- === 0) return false;
    const path = join(dir, entry.name);
    if (!entry.isDirectory()) await unlink(path);
    else if (!(await removeFew(path, left))) return false;
  }
  await rmdir(dir);
  return true;
}
