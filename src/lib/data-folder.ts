/** Folders of the operator, created when missing. A folder that cannot be used is refused in one line that says what to do. */
import { accessSync, constants, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { UsageError } from "./usage-error.ts";

const REASONS: Record<string, string> = {
  EACCES: "this user may not write there",
  EPERM: "this user may not write there",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  ENOTDIR: "a part of that path is a file",
  EEXIST: "it is a file",
  ENOENT: "the file system refuses new folders there",
  ENAMETOOLONG: "the path is too long",
};

export const makeDataFolder = (dataDir: string): void =>
  makeUsableFolder("data folder", dataDir, "choose another folder with --data or BERTH_DATA");

/** `next`: what the operator does about a folder that is refused. */
export function makeUsableFolder(what: string, dir: string, next: string): void {
  try {
    makeFolder(resolve(dir));
    accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    throw new UsageError(`The ${what} ${dir} cannot be used: ${REASONS[code] ?? code}.`, next);
  }
}

/**
 * Creates a folder and its missing parents, one at a time. `mkdirSync` with `recursive` never returns below /proc,
 * where creating a folder fails with ENOENT although its parent exists.
 */
function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && statSync(path).isDirectory()) return;
    if (code !== "ENOENT" || statSync(dirname(path), { throwIfNoEntry: false }) !== undefined) throw error;
    makeFolder(dirname(path));
    mkdirSync(path, { mode: 0o700 });
  }
}
