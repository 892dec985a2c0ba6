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
/** In the folder of versions; held by the one upgrade that is at work. */
export const UPGRADE_LOCK = "upgrade.lock";
/** In the folder of a version while it is being installed: a folder that has it at any other time is half of one. */
const UNFINISHED = ".installing";
/** In the folder of a version: where its files come from. */
const ORIGIN = ".origin";

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

export const beginInstall = (root: string): void => writeFileSync(join(root, UNFINISHED), "");

export function endInstall(root: string, origin: string): void {
  writeFileSync(join(root, ORIGIN), `${origin}\n`);
  rmSync(join(root, UNFINISHED));
}

/** A whole version of this origin that no server uses: `berth upgrade --check` has left it. */
export function findInstalled({ folder }: Installation, origin: string, used: readonly string[]): string | null {
  const roots = versionFolders(folder).filter((root) => !used.includes(root) && !existsSync(join(root, UNFINISHED)));
  return roots.find((root) => readText(join(root, ORIGIN)).trim() === origin) ?? null;
}

/** Removes what killed upgrades left half installed. The caller holds the lock of upgrades. */
export async function removeUnfinished(given: Installation): Promise<void> {
  for (const root of unfinishedVersions(given)) await removeTree(root);
}

export const unfinishedVersions = ({ folder }: Installation): string[] =>
  versionFolders(folder).filter((root) => existsSync(join(root, UNFINISHED)));

function versionFolders(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(folder, name));
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // versions that were installed by an older Berth have no such file
  }
}

/** Removes versions that are neither current nor in `used`, including those that an interrupted upgrade left. */
export async function sweep(given: Installation, used: readonly string[]): Promise<void> {
  const kept = new Set([currentRoot(given), ...used].map((root) => basename(root)));
  for (const root of versionFolders(given.folder)) if (!kept.has(basename(root))) await removeTree(root);
}
