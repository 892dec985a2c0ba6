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

/** Most parts; each adds a mount to the start of every workload. WSL, with mounts below /usr/lib, has about 150. */
const PARTS_MAX = 250;
/** Most bytes copied. Libraries and programs lie in folders; only a few small files lie beside them. */
const COPIED_BYTES_MAX = 64 * 1024 * 1024;

export interface Split {
  /** Mount points of the machine. */
  mountPoints: readonly string[];
  /** Folder for the copies: new, or filled by an earlier call with the same mount points. */
  dir: string;
}

/** Splits a part. Returns the part itself when nothing is mounted below it or splitting would exceed the limits. */
export function splitPart(part: RootPart, split: Split): RootPart[] {
  if (!hasMountsBelow(part.at, split)) return [part];
  const left = { parts: PARTS_MAX, bytes: COPIED_BYTES_MAX };
  try {
    const parts = takeApart(part, split, left);
    return left.parts >= 0 && left.bytes >= 0 ? parts : [part];
  } catch {
    return [part]; // the server may not read a folder on the way
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

/** Copies links and files and returns the bytes copied. Files that the server may not read are left out. */
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
