/** Reading /proc/PID/mountinfo. */
import { readFileSync } from "node:fs";

export interface MountEntry {
  /** The mounted file system, as MAJOR:MINOR. */
  device: string;
  /** The path within the mounted file system. */
  root: string;
  /** The mount point as the process sees it. */
  at: string;
}

export function readMountTable(pid: number | "self"): MountEntry[] {
  const lines = readFileSync(`/proc/${pid}/mountinfo`, "utf8").trimEnd().split("\n");
  return lines.map((line) => {
    const [, , device = "", root = "", at = ""] = line.split(" ");
    return { device, root: unescapeOctal(root), at: unescapeOctal(at) };
  });
}

const unescapeOctal = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** A host folder by its file system, which is how other mounts of it appear in a table. */
export interface MountSource {
  device: string;
  root: string;
}

/** Null where the path is on no mount. */
export function mountSourceOf(path: string, table: MountEntry[]): MountSource | null {
  const mounts = table.filter(({ at }) => isBelow(path, at)).sort((a, b) => a.at.length - b.at.length);
  const mount = mounts.at(-1); // of two at one place the later one is seen
  if (!mount) return null;
  const rest = mount.at === "/" ? path : path.slice(mount.at.length);
  return { device: mount.device, root: `${mount.root === "/" ? "" : mount.root}${rest}` || "/" };
}

/**
 * Where `source` (or anything below it) is mounted now. The workload may have renamed folders
 * above its mount point, so the recorded path is tried first and the others after it.
 */
export function findMount(table: MountEntry[], source: MountSource, path: string, others: string[]): string | null {
  const mounts = table.filter(({ device, root }) => device === source.device && isBelow(root, source.root));
  const exact = mounts.find(({ at }) => at === path);
  return (exact ?? mounts.find(({ at }) => !others.includes(at)))?.at ?? null;
}

const isBelow = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
