/** Copies files and folders with their modes, times and links. */
import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  rmSync,
  type Stats,
  statSync,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { type BytePath, folderOf, joinPath, toBytes, toText } from "../files/byte-path.ts";
import { isLoaderFolder } from "./loader-files.ts";
import { entriesOf } from "./matching.ts";
import type { Owner } from "./owner.ts";

export interface Changes {
  /** Null: as the source has it. */
  owner: Owner | null;
  mode: number | null;
  /** Paths that are left out, at the source and at the target. */
  skips: ReadonlySet<string>;
}

interface How {
  /** A link as the source itself stands for what it leads to. */
  follow?: boolean;
  /** The target is a folder that takes the entries of the source. */
  inside?: boolean;
}

export function copyEntry(
  from: BytePath,
  to: BytePath,
  changes: Changes,
  { follow = false, inside = false }: How = {},
): void {
  if (changes.skips.has(from) || changes.skips.has(to)) return;
  const stat = follow ? statSync(toBytes(from)) : lstatSync(toBytes(from));
  if (stat.isDirectory()) copyFolder(from, to, stat, changes, inside);
  else if (stat.isSymbolicLink()) copyLink(from, to, stat, changes);
  else if (stat.isFile()) copyFile(from, to, stat, changes);
  // Sockets, FIFOs and device files are not part of an image.
}

function copyFolder(from: BytePath, to: BytePath, stat: Stats, changes: Changes, inside: boolean): void {
  const there = statSync(toBytes(to), { throwIfNoEntry: false });
  if (there && !there.isDirectory()) throw new Error(`'${toText(to)}' is there and is not a folder`);
  if (!there) mkdirSync(toBytes(to));
  for (const name of entriesOf(from)) copyEntry(joinPath(from, name), joinPath(to, name), changes);
  // The folder that COPY names as its target keeps its own owner and mode.
  if (inside) return;
  setOwnerAndMode(to, changes.owner ?? stat, changes.mode ?? stat.mode & 0o7777);
  utimesSync(toBytes(to), stat.atime, stat.mtime);
}

function copyLink(from: BytePath, to: BytePath, stat: Stats, { owner }: Changes): void {
  if (isLoaderFolder(to)) rmSync(toBytes(to), { recursive: true });
  clear(to);
  symlinkSync(readlinkSync(toBytes(from), { encoding: "buffer" }), toBytes(to));
  owned(() => lchownSync(toBytes(to), owner?.uid ?? stat.uid, owner?.gid ?? stat.gid), owner !== null);
}

function copyFile(from: BytePath, to: BytePath, stat: Stats, changes: Changes): void {
  clear(to);
  copyFileSync(toBytes(from), toBytes(to), constants.COPYFILE_EXCL);
  setOwnerAndMode(to, changes.owner ?? stat, changes.mode ?? stat.mode & 0o7777, changes.owner !== null);
  utimesSync(toBytes(to), stat.atime, stat.mtime);
}

/** A file is replaced, never written through: it may be a link. */
function clear(path: BytePath): void {
  const there = lstatSync(toBytes(path), { throwIfNoEntry: false });
  if (there?.isDirectory()) throw new Error(`'${toText(path)}' is there and is a folder`);
  if (there) rmSync(toBytes(path));
}

/** The owner first: changing it clears set-id bits. */
export function setOwnerAndMode(path: BytePath, { uid, gid }: Owner, mode: number, isAsked = false): void {
  owned(() => chownSync(toBytes(path), uid, gid), isAsked);
  chmodSync(toBytes(path), mode);
}

/** On a machine with a weaker isolation grade than `mapped` every file is root's; that is told where it was asked for. */
function owned(change: () => void, isAsked: boolean): void {
  try {
    change();
  } catch (error) {
    if (isAsked) throw new Error(`the owner of a file cannot be set on this machine: ${(error as Error).message}`);
  }
}

/** Makes the folder and those above it. Folders that exist stay as they are. */
export function makeFolders(path: BytePath, owner: Owner | null): void {
  const there = statSync(toBytes(path), { throwIfNoEntry: false });
  if (there?.isDirectory()) return;
  if (there || lstatSync(toBytes(path), { throwIfNoEntry: false }))
    throw new Error(`'${toText(path)}' is there and is not a folder`);
  makeFolders(folderOf(path), owner);
  mkdirSync(toBytes(path), { mode: 0o755 });
  if (owner) setOwnerAndMode(path, owner, 0o755, owner.uid !== 0 || owner.gid !== 0);
}
