/** Reading /proc/PID/mountinfo. */
import { readFileSync } from "node:fs";

export interface MountEntry {
  /** The path within the mounted file system. */
  root: string;
  /** The mount point as the process sees it. */
  at: string;
}

export function readMountTable(pid: number | "self"): MountEntry[] {
  const lines = readFileSync(`/proc/${pid}/mountinfo`, "utf8").trimEnd().split("\n");
  return lines.map((line) => {
    const [, , , root = "", at = ""] = line.split(" ");
    return { root: unescapeOctal(root), at: unescapeOctal(at) };
  });
}

const unescapeOctal = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** The path of a host folder within its file system, which is how other mounts of it appear in a table. */
export function pathInFileSystem(path: string, table: MountEntry[]): string {
  const [mount] = table.filter(({ at }) => isBelow(path, at)).sort((a, b) => b.at.length - a.at.length);
  if (!mount) return path;
  const rest = mount.at === "/" ? path : path.slice(mount.at.length);
  return `${mount.root === "/" ? "" : mount.root}${rest}`;
}

/**
 * Where `source` (a path in its file system, or anything below) is mounted now. The workload may have renamed folders
 * above its mount point, so the recorded path is tried first and the others after it.
 */
export function findMount(table: MountEntry[], source: string, path: string, others: string[]): string | null {
  const mounts = table.filter(({ root }) => isBelow(root, source));
  const exact = mounts.find(({ at }) => at === path);
  return (exact ?? mounts.find(({ at }) => !others.includes(at)))?.at ?? null;
}

const isBelow = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
