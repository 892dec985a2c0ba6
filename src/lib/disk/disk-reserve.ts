/**
 * Disk space reserved for the platform itself. Workloads share the file system with the database; when one of them has
 * filled it, not even a delete could be committed. The reserve is a folder of slices. Each slice has a file with real
 * content and empty files (file systems run out of inodes, too). When the platform cannot write, it removes a slice to
 * make room for the commit, the restart or the delete that frees more. Slices are created again when there is room.
 */
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, rmSync, statfsSync } from "node:fs";
import { mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

export const RESERVE_FOLDER = "reserve";
/**
 * Slices are given up one by one, so that a workload that keeps writing takes at most one before the platform writes.
 */
export const RESERVE_SLICES = 8;
const INODES_PER_SLICE = 16;
const CHUNK_BYTES = 256 * 1024;
/** Free space that a start needs for its notes and the database's first pages. */
const START_BYTES = 2 * 1024 * 1024;
const START_INODES = 16;

/** Removes one slice synchronously. Returns false when none is left. */
export function giveUpSlice(dataDir: string): boolean {
  const [first] = slicesOf(dataDir);
  if (first === undefined) return false;
  rmSync(join(dataDir, RESERVE_FOLDER, first), { recursive: true, force: true });
  return true;
}

export const slicesLeft = (dataDir: string): number => slicesOf(dataDir).length;

/** Gives up a slice when the disk is too full for a server or a command to start. */
export function makeRoomToStart(dataDir: string): void {
  if (!existsSync(dataDir)) return;
  const { bavail, bsize, ffree, files } = statfsSync(dataDir);
  if (bavail * bsize < START_BYTES || (files > 0 && ffree < START_INODES)) giveUpSlice(dataDir);
}

/** Creates the missing slices. Rejects when there is no room for one; slices already created stay. */
export async function fillReserve(dataDir: string, bytes: number): Promise<void> {
  const folder = join(dataDir, RESERVE_FOLDER);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const there = new Set(slicesOf(dataDir));
  for (let each = 0; each < RESERVE_SLICES; each++) {
    if (there.has(String(each))) continue;
    const unfinished = join(folder, `${each}.new`);
    try {
      await rm(unfinished, { recursive: true, force: true });
      await mkdir(unfinished, { mode: 0o700 });
      await writeRandom(join(unfinished, "bytes"), Math.ceil(bytes / RESERVE_SLICES));
      for (let inode = 0; inode < INODES_PER_SLICE; inode++) await writeFile(join(unfinished, `inode-${inode}`), "");
      await rename(unfinished, join(folder, String(each)));
    } catch (error) {
      await rm(unfinished, { recursive: true, force: true });
      throw error;
    }
  }
}

/** Writes random bytes, which no file system can compress. */
async function writeRandom(path: string, bytes: number): Promise<void> {
  const chunk = randomBytes(Math.min(CHUNK_BYTES, Math.max(1, bytes)));
  const file = await open(path, "wx", 0o600);
  try {
    for (let left = bytes; left > 0; left -= chunk.length) await file.write(chunk, 0, Math.min(left, chunk.length));
    await file.datasync();
  } finally {
    await file.close();
  }
}

function slicesOf(dataDir: string): string[] {
  const folder = join(dataDir, RESERVE_FOLDER);
  return existsSync(folder) ? readdirSync(folder).filter((name) => /^\d+$/.test(name)) : [];
}
