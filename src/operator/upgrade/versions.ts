/**
 * The versions of an installation. The folder that was installed first is the base; `berth upgrade` puts others into
 * `versions/` below it, and the file `versions/current` names the one that every `berth` and `npm start` runs
 * (bin/berth.js reads it). `npm ci` in the base removes that file: the base is current again.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { removeTree } from "../../lib/remove-tree.ts";
import { ROOT } from "../../lib/root.ts";

const VERSIONS = "versions";
const CURRENT = "current";

export interface Installation {
  /** The folder that was installed first. */
  base: string;
  /** Folder for further versions. */
  folder: string;
}

/** The installation that this program belongs to. */
export function installation(root = ROOT): Installation {
  const above = dirname(dirname(root));
  const isBeside = basename(dirname(root)) === VERSIONS && existsSync(join(above, "bin/berth.js"));
  const base = isBeside ? above : root;
  return { base, folder: join(base, VERSIONS) };
}

/** The folder that the next start runs from. */
export function currentRoot({ base, folder }: Installation): string {
  try {
    const id = readFileSync(join(folder, CURRENT), "utf8").trim();
    return existsSync(join(folder, id, "bin/berth.js")) ? join(folder, id) : base;
  } catch {
    return base;
  }
}

/** Written to a temporary file and renamed, so that a start never reads half of it. */
export function makeCurrent({ base, folder }: Installation, root: string): void {
  const file = join(folder, CURRENT);
  if (root === base) {
    rmSync(file, { force: true });
    return;
  }
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${file}.next`, `${basename(root)}\n`);
  renameSync(`${file}.next`, file);
}

/** Removes versions that are neither current nor in `used`, including those that an interrupted upgrade left. */
export async function sweep(given: Installation, used: readonly string[]): Promise<void> {
  if (!existsSync(given.folder)) return;
  const kept = new Set([currentRoot(given), ...used].map((root) => basename(root)));
  for (const entry of readdirSync(given.folder, { withFileTypes: true }))
    if (entry.isDirectory() && !kept.has(entry.name)) await removeTree(join(given.folder, entry.name));
}
