/** Files and folders as answers show them. */
import { lstatSync, readdirSync, realpathSync, type Stats, statSync } from "node:fs";
import { setImmediate as breathe } from "node:timers/promises";
import { ApiError } from "../http/api-error.ts";
import { groupName, userName } from "./accounts.ts";
import { type BytePath, baseName, fromBytes, joinPath, toBytes, toText } from "./byte-path.ts";

export interface FileEntry {
  path: string;
  name: string;
  permissions: string;
  size: number;
  lastModified: string;
  owner: string;
  group: string;
}

export interface Folder {
  path: string;
  name: string;
  files: FileEntry[];
  /** `target`: where a symbolic link leads, all links resolved. */
  subdirectories: { path: string; name: string; target?: string }[];
  /** Present only when the folder has more than ENTRIES_MAX entries. */
  truncated?: true;
}

/** Most entries in one listing; the find endpoint serves larger folders. */
const ENTRIES_MAX = 100_000;
/** Entries read before the event loop serves other requests. */
const ENTRIES_PER_TURN = 500;

export function fileEntry(path: BytePath, stats: Stats): FileEntry {
  return {
    path: toText(path),
    name: toText(baseName(path)),
    permissions: permissionsText(stats.mode),
    size: stats.size,
    lastModified: stats.mtime.toISOString(),
    owner: userName(stats.uid),
    group: groupName(stats.gid),
  };
}

export const permissionsText = (mode: number): string => `0${(mode & 0o7777).toString(8).padStart(3, "0")}`;

/** Octal text such as "644", "0755" or "0o600". */
export function parsePermissions(text: string | undefined, fallback: number): number {
  if (text === undefined || text === "") return fallback;
  const match = /^(?:0o)?([0-7]{1,5})$/.exec(text);
  const mode = Number.parseInt(match?.[1] ?? "", 8);
  if (!match || mode > 0o7777)
    throw new ApiError(400, `Permissions are an octal number such as "0644", not "${text}".`);
  return mode;
}

/** Lists one level. A symbolic link counts as its target; a broken link counts as a file. */
export async function listFolder(path: BytePath): Promise<Folder> {
  const names = readdirSync(toBytes(path), { encoding: "buffer" });
  const folder: Folder = { path: toText(path), name: toText(baseName(path)), files: [], subdirectories: [] };
  if (names.length > ENTRIES_MAX) folder.truncated = true;
  let looked = 0;
  for (const raw of names.slice(0, ENTRIES_MAX)) {
    const entry = joinPath(path, fromBytes(raw));
    const stats = statOrLink(entry);
    if (stats?.isDirectory())
      folder.subdirectories.push({ path: toText(entry), name: toText(baseName(entry)), ...linkTarget(entry) });
    else if (stats) folder.files.push(fileEntry(entry, stats));
    looked += 1;
    if (looked % ENTRIES_PER_TURN === 0) await breathe();
  }
  const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);
  folder.files.sort(byName);
  folder.subdirectories.sort(byName);
  return folder;
}

function linkTarget(path: BytePath): { target?: string } {
  try {
    const raw = toBytes(path);
    return lstatSync(raw).isSymbolicLink() ? { target: realpathSync(raw) } : {};
  } catch {
    return {}; // removed meanwhile, or now a broken link
  }
}

/** Undefined when the entry has vanished or the daemon may not see it. */
export function statOrLink(path: BytePath): Stats | undefined {
  try {
    return statSync(toBytes(path), { throwIfNoEntry: false }) ?? lstatSync(toBytes(path), { throwIfNoEntry: false });
  } catch {
    try {
      return lstatSync(toBytes(path), { throwIfNoEntry: false });
    } catch {
      return undefined;
    }
  }
}
