/** Control groups of pods. containerd makes them below one group of the machine, and a cluster that is killed leaves them. */
import { existsSync, readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";

const ROOT = "/sys/fs/cgroup";
/** containerd's own choice for pods of a kubelet without groups for classes of service. */
const PARENT = "k8s.io";

/** Remembers the groups that are there; the answer removes those that came later and are empty. */
export function watchControlGroups(): () => void {
  const parents = [ROOT, ...readdirSync(ROOT).map((name) => join(ROOT, name))].map((path) => join(path, PARENT));
  const before = new Set(parents.flatMap((path) => (existsSync(path) ? [path, ...children(path)] : [])));
  return () => {
    for (const parent of parents)
      for (const path of existsSync(parent) ? [...children(parent), parent] : []) if (!before.has(path)) remove(path);
  };
}

const children = (path: string): string[] =>
  readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [join(path, entry.name)] : []));

/** The kernel refuses to remove a group with processes: those of another cluster stay. */
function remove(path: string): void {
  for (const child of children(path)) remove(child);
  try {
    rmdirSync(path);
  } catch {
    // in use
  }
}
