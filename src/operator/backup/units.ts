/**
 * What a backup takes from one machine: folders of the data folder, each packed as a tar of its own. A file system in a
 * file is copied while it is frozen and the copy is packed, so that it is whole; folders that workloads write to while
 * they are read have each file as it was when its turn came.
 */
import { existsSync, lstatSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { constants, copyFile, rm, stat, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { PlatformError } from "../../contract/errors.ts";
import { bytesText } from "../../lib/bytes-text.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { SECOND_MS } from "../../lib/time/clock.ts";
import { tarStream } from "../../node/drivers/common/tar-stream.ts";
import { copyFrozen, copyStill } from "../../node/drivers/local/storage/frozen-copy.ts";
import { mountImage, unmountImage, unmountLeftovers } from "../../node/drivers/local/storage/loop-image.ts";
import { loadRecords } from "../../node/drivers/local/workload/record.ts";

/** A kind of folder. `folder` is relative to the data folder. */
export interface Family {
  folder: string;
  /** Each entry of the folder is a unit; otherwise the folder is one. */
  each: boolean;
  /** A finished unit never changes, so one that was stored before is not read again. */
  immutable?: true;
  /** Entries of the unit that are packed; all of them when absent. */
  only?: readonly string[];
  /** What is not packed, with `*` for any name. */
  without?: string;
  /** A file system that workloads may have mounted. */
  image?: string;
  /** A record of the driver, which names folders of the machine that it was on. */
  record?: string;
}

/** What overlays keep for themselves; the next start makes it anew, and some of it is closed to its owner. */
const OVERLAY_WORK = "fs/*/work/*";

/** The local driver's folders come first, as `runtime/…`; they are the same on every machine. */
export const FAMILIES: readonly Family[] = [
  { folder: "runtime/volumes", each: true, image: "image" },
  { folder: "runtime/drives", each: true },
  { folder: "runtime/volume-copies", each: true, immutable: true },
  { folder: "runtime/images/layers", each: true, immutable: true },
  { folder: "runtime/images/names", each: false },
  { folder: "runtime/images/documents", each: false },
  { folder: "runtime/images/notes", each: false },
  { folder: "runtime/snapshots", each: true, immutable: true, record: "snapshot.json" },
  {
    ...{ folder: "runtime/workloads", each: true, only: ["record.json", "fs"], without: OVERLAY_WORK },
    ...{ image: "disk.img", record: "record.json" },
  },
  { folder: "blobs", each: false, only: ["sha256", "notes"] },
];

export interface Unit {
  family: Family;
  /** Name of the entry; empty for a family that is one unit. */
  name: string;
  path: string;
  /** Changes with the folder; for units that are immutable. */
  stamp: string;
}

/** Names of units come back from a repository as names of folders. */
export const UNIT_NAME = /^[A-Za-z0-9][A-Za-z0-9._:@%+-]{0,254}$/;
/** Folder of the copies, relative to the data folder; `composition/backups.ts` looks for it at a start. */
const WORK_FOLDER = join("runtime", "backup-work");
const FREEZE_TRIES_MAX = 10;
/** Left for the database and the logs of the server, which runs on during a backup. */
const DISK_RESERVE_BYTES = 256 * 1024 ** 2;
/** The unit of `blocks` in what the system says of a file. */
const BLOCK_BYTES = 512;

export function unitsOf(dataDir: string): Unit[] {
  return FAMILIES.flatMap((family) => {
    const folder = join(dataDir, family.folder);
    if (!existsSync(folder)) return [];
    const names = family.each ? namesIn(family, folder) : [""];
    return names.map((name) => ({ family, name, path: join(folder, name), stamp: stampOf(join(folder, name)) }));
  });
}

function namesIn(family: Family, folder: string): string[] {
  const kept = family.folder.endsWith("/workloads") ? sandboxesIn(folder) : readdirSync(folder);
  return kept.filter((name) => UNIT_NAME.test(name) && lstatSync(join(folder, name)).isDirectory()).sort();
}

/** Other workloads start anew from their images; a sandbox that is kept ready has no files yet. */
const sandboxesIn = (folder: string): string[] =>
  loadRecords(folder).flatMap(({ id, record }) =>
    record?.uid && record.phase === "ready" && !record.command ? [id] : [],
  );

function stampOf(path: string): string {
  const { mtimeMs = 0, ctimeMs = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {};
  return `${mtimeMs} ${ctimeMs}`;
}

/** Runs `work` with a folder for copies. */
export async function withWorkFolder<T>(dataDir: string, work: (folder: string) => Promise<T>): Promise<T> {
  await clearWorkFolders(dataDir);
  const own = join(dataDir, WORK_FOLDER, String(process.pid));
  mkdirSync(join(own, "mnt"), { recursive: true, mode: 0o700 });
  try {
    return await work(own);
  } finally {
    await clear(own);
  }
}

/** Removes the folders, and the mounts in them, that backups left which were killed. */
export async function clearWorkFolders(dataDir: string): Promise<void> {
  const all = join(dataDir, WORK_FOLDER);
  for (const name of existsSync(all) ? readdirSync(all) : [])
    if (name === String(process.pid) || !existsSync(`/proc/${name}`)) await clear(join(all, name));
}

async function clear(folder: string): Promise<void> {
  await unmountLeftovers(folder);
  await removeTree(folder);
}

export interface TarReader<T> {
  /** Reads the tar to its end. */
  use(tar: Readable): Promise<T>;
  /** Told of a file that cannot be read, or that is exchanged while it is read: it is left out of the tar. */
  leftOut(reason: string): void;
}

/** The unit as a tar; null when it was removed meanwhile. */
export async function withTar<T>(unit: Unit, work: string, { use, leftOut }: TarReader<T>): Promise<T | null> {
  const { family, path } = unit;
  const image = family.image && existsSync(join(path, family.image)) ? family.image : null;
  const copies = join(work, "copy");
  try {
    if (image === null) return await use(treeOf(unit, leftOut));
    await requireRoom(join(path, image), work);
    mkdirSync(join(copies, "mnt"), { recursive: true, mode: 0o700 }); // where the driver mounts a volume
    await copyImage(join(path, image), join(copies, image), join(work, "mnt"));
    const records = readdirSync(path).filter((name) => name.endsWith(".json"));
    for (const name of records) await copyFile(join(path, name), join(copies, name));
    return await use(tarStream([...IMAGE_FORMAT, "-C", copies, "."]));
  } catch (error) {
    if (!existsSync(path)) return null;
    throw error;
  } finally {
    await removeTree(copies);
  }
}

/** A copy that fills the disk stops every workload of the machine, so the backup fails before it. */
async function requireRoom(image: string, work: string): Promise<void> {
  const neededBytes = (await stat(image)).blocks * BLOCK_BYTES;
  mkdirSync(work, { recursive: true, mode: 0o700 });
  const { bavail, bsize } = await statfs(work);
  const freeBytes = Math.max(0, bavail * bsize - DISK_RESERVE_BYTES);
  if (neededBytes <= freeBytes || (await sharesBlocks(work))) return;
  throw new PlatformError(
    "insufficient_storage",
    `The copy of ${image} takes ${bytesText(neededBytes)} for the time of the backup, and the disk has room for ${bytesText(freeBytes)}. Free some space and try again.`,
  );
}

/** Whether a copy in this folder takes no space of its own at first (XFS with reflinks, btrfs). */
async function sharesBlocks(folder: string): Promise<boolean> {
  const [from, to] = [join(folder, "shares-blocks"), join(folder, "shares-blocks.copy")];
  try {
    await writeFile(from, "x");
    await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE);
    return true;
  } catch {
    return false;
  } finally {
    for (const file of [from, to]) await rm(file, { force: true });
  }
}

const entriesOf = ({ only }: Family, path: string): string[] =>
  only ? only.filter((name) => existsSync(join(path, name))) : ["."];

/** Holes stay holes. The names of the format hold no process id, which would change with every backup. */
const IMAGE_FORMAT = ["--sparse", "--format=gnu", "--sort=name"];
/** Extended attributes hold the marks of overlays. Times of access would change with every backup. */
const TREE_FORMAT = [
  ...["--sparse", "--format=posix", "--sort=name", "--one-file-system", "--xattrs", "--xattrs-include=*"],
  "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime",
];

/** How `tar` begins to speak of a file that it leaves out. */
const LEFT_OUT = /^tar: (.+): Warning: (.+)$/;

/** A workload may close its files or exchange them at any moment, which must not end the backup of all others. */
const treeOf = ({ family, path }: Unit, leftOut: (reason: string) => void): Readable => {
  // The pattern counts from the folder of the unit, so that it hides no files that a sandbox wrote.
  const without = family.without ? ["--anchored", "--no-wildcards-match-slash", `--exclude=${family.without}`] : [];
  const args = [...TREE_FORMAT, "--ignore-failed-read", ...without, "-C", path, ...entriesOf(family, path)];
  return tarStream(args, (line) => {
    const [, file, problem] = LEFT_OUT.exec(line) ?? [];
    if (file !== undefined) leftOut(`${file}: ${problem}`);
  });
};

/** A server beside may have the file system frozen for a snapshot: then the next try finds it thawed. */
async function copyImage(image: string, to: string, at: string): Promise<void> {
  if (process.getuid?.() !== 0) return copyStill(image, to);
  await mountImage(image, at);
  try {
    for (let tries = 1; ; tries += 1)
      try {
        return await copyFrozen(image, to, at);
      } catch (error) {
        if (tries === FREEZE_TRIES_MAX || !String(error).includes("busy")) throw error;
        await pause(SECOND_MS);
      }
  } finally {
    await unmountImage(at);
  }
}
