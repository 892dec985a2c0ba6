/** Drives: plain directories below one folder. */
import { existsSync, readdirSync } from "node:fs";
import { chmod, cp, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { DriveFolders, DriveOptions } from "../../../capabilities/drives.ts";
import { checkId } from "../../common/spec-check.ts";
import { folderBytes } from "./volumes.ts";

/** A name that no drive can have, for a drive that is still being copied. */
const unfinished = (dir: string, id: string): string => join(dir, `.${id}`);

/** A file beside a drive that does not outlive this opening of the driver; no drive can have such a name. */
const TEMPORARY = ".temporary-";

export async function createDrive(
  dir: string,
  id: string,
  { from, temporary = false }: DriveOptions = {},
): Promise<void> {
  if (existsSync(join(dir, id))) return;
  if (temporary) await writeFile(join(dir, `${TEMPORARY}${id}`), "");
  const temp = unfinished(dir, id);
  await removeTree(temp);
  if (from) await cp(from, temp, { recursive: true, verbatimSymlinks: true });
  else await mkdir(temp);
  await chmod(temp, 0o755);
  await rename(temp, join(dir, id));
}

export async function removeDrive(dir: string, id: string): Promise<void> {
  await removeTree(join(dir, id));
  await removeTree(workOf(dir, id));
  await rm(join(dir, `${TEMPORARY}${id}`), { force: true });
}

/** Removes copies that a server left unfinished, and drives that were not to outlive it. */
export async function sweepDrives(dir: string): Promise<void> {
  for (const name of readdirSync(dir)) {
    if (name.startsWith(TEMPORARY)) await removeDrive(dir, name.slice(TEMPORARY.length));
    else if (name.startsWith(".")) await removeTree(join(dir, name));
  }
}

/** Null when the drive does not exist. Objects that are still sent in parts count too. */
export async function driveBytes(dir: string, id: string): Promise<number | null> {
  checkId(id);
  if (!existsSync(join(dir, id))) return null;
  const beside = existsSync(workOf(dir, id)) ? await folderBytes(workOf(dir, id)) : 0;
  return (await folderBytes(join(dir, id))) + beside;
}

export async function driveFolders(dir: string, id: string): Promise<DriveFolders> {
  const work = workOf(dir, id);
  await mkdir(work, { recursive: true, mode: 0o700 });
  return { files: join(dir, id), work };
}

/** Beside the folder of all drives, so that no sweep of drives finds it. */
const workOf = (dir: string, id: string): string => join(`${dir}-work`, id);
