/** A file or folder as E2B's clients know it. */
import { lstatSync, readlinkSync, type Stats, statSync } from "node:fs";
import { resolve } from "node:path";
import { groupName, userName } from "../files/accounts.ts";
import { type BytePath, baseName, toBytes, toText } from "../files/byte-path.ts";
import { ApiError } from "../http/api-error.ts";
import type { Message } from "./connect.ts";

/** A link has the type of what it leads to, and is a link only where that is nothing. */
export function entryInfo(path: BytePath): Message {
  const stats = lstatSync(toBytes(path), { throwIfNoEntry: false });
  if (!stats) throw new ApiError(404, `${toText(path)}: no such file or directory`);
  const isLink = stats.isSymbolicLink();
  const shown = isLink ? (targetStats(path) ?? stats) : stats;
  return {
    name: toText(baseName(path)),
    type: typeOf(shown),
    path: toText(path),
    size: String(stats.size), // the protocol writes numbers of 64 bits as text
    mode: shown.mode & 0o7777,
    permissions: permissionsOf(shown),
    owner: userName(stats.uid),
    group: groupName(stats.gid),
    modifiedTime: stats.mtime.toISOString(),
    ...(isLink ? { symlinkTarget: resolve(toText(path), "..", readlinkSync(toBytes(path), "utf8")) } : {}),
  };
}

function targetStats(path: BytePath): Stats | undefined {
  try {
    return statSync(toBytes(path), { throwIfNoEntry: false });
  } catch {
    return undefined; // a circle of links, or a folder that may not be entered
  }
}

function typeOf(stats: Stats): string {
  if (stats.isDirectory()) return "FILE_TYPE_DIRECTORY";
  if (stats.isSymbolicLink()) return "FILE_TYPE_SYMLINK";
  return stats.isFile() ? "FILE_TYPE_FILE" : "FILE_TYPE_UNSPECIFIED";
}

/** As `ls -l` shows them: `-rw-r--r--`. */
function permissionsOf(stats: Stats): string {
  const kind = stats.isDirectory() ? "d" : stats.isSymbolicLink() ? "L" : "-";
  const bits = [..."rwxrwxrwx"].map((letter, index) => (stats.mode & (0o400 >> index) ? letter : "-"));
  return `${kind}${bits.join("")}`;
}
