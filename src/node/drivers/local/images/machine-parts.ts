/**
 * The machine's own folders as parts of the base image.
 *
 * The kernel lets an ordinary user see a folder of the machine only together with what is mounted below it, and makes
 * no overlay over such a pair (EINVAL). A folder with mounts below it is therefore taken apart: one part for each folder
 * in it, and one for the folder itself, over a copy of its links and files. The mounts themselves are left out.
 */
import { copyFileSync, existsSync, lstatSync, mkdirSync, readdirSync, readlinkSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { RootPart } from "../workload/launch-program.ts";

/** Each is a mount more in the start of every workload. Linux on Windows, with mounts below /usr/lib, has about 150. */
const PARTS_MAX = 250;
/** Libraries and programs lie in folders; beside these are a few small files. */
const COPIED_BYTES_MAX = 64 * 1024 * 1024;

export interface Split {
  /** Where the machine has something mounted. */
  mountPoints: readonly string[];
  /** Keeps the copies: a new folder, or one that an earlier call with the same mount points has filled. */
  dir: string;
}

/** The part itself where nothing is mounted below it, or where taking it apart would be too much. */
export function splitPart(part: RootPart, split: Split): RootPart[] {
  if (!hasMountsBelow(part.at, split)) return [part];
  const left = { parts: PARTS_MAX, bytes: COPIED_BYTES_MAX };
  try {
    const parts = takeApart(part, split, left);
    return left.parts >= 0 && left.bytes >= 0 ? parts : [part];
  } catch {
    return [part]; // a folder on the way is closed to the server
  }
}

function takeApart({ at, lowers }: RootPart, split: Split, left: { parts: number; bytes: number }): RootPart[] {
  const copies = join(split.dir, at);
  mkdirSync(copies, { recursive: true, mode: 0o755 });
  const own = lowers.filter((lower) => lower !== at);
  const folders: RootPart[] = [];
  for (const entry of readdirSync(at, { withFileTypes: true })) {
    if (left.parts < 0 || left.bytes < 0) break;
    const path = join(at, entry.name);
    const mounted = split.mountPoints.includes(path);
    if (entry.isDirectory()) mkdirSync(join(copies, entry.name), { recursive: true, mode: 0o755 });
    if (mounted) continue;
    if (!entry.isDirectory()) left.bytes -= copy(path, join(copies, entry.name));
    else {
      const below = { at: path, lowers: lowers.map((lower) => join(lower, entry.name)).filter(isFolder) };
      left.parts -= 1;
      folders.push(...(hasMountsBelow(path, split) ? takeApart(below, split, left) : [below]));
    }
  }
  return [{ at, lowers: [...own, copies] }, ...folders];
}

/** Bytes of the copy. What the server may not read, its workloads do without. */
function copy(from: string, to: string): number {
  if (existsSync(to)) return 0;
  const stat = lstatSync(from);
  if (stat.isSymbolicLink()) symlinkSync(readlinkSync(from), to);
  else if (stat.isFile() && stat.size <= COPIED_BYTES_MAX) {
    try {
      copyFileSync(from, to);
    } catch {
      return 0;
    }
  }
  return stat.size;
}

const hasMountsBelow = (path: string, { mountPoints }: Split): boolean =>
  mountPoints.some((point) => point.startsWith(`${path}/`));

const isFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
