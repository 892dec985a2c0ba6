/** Control groups of pods: each kubelet has a group of its own for them, and a cluster that is killed leaves them. */
import { existsSync, mkdirSync, readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";

const ROOT = "/sys/fs/cgroup";

/** Makes the group in every hierarchy of the machine. */
export function makeControlGroup(name: string): void {
  for (const path of hierarchies()) mkdirSync(join(path, name), { recursive: true });
}

/** Removes the group with all below it. */
export function removeControlGroup(name: string): void {
  for (const path of hierarchies()) if (existsSync(join(path, name))) remove(join(path, name));
}

/** One for all controllers (version 2), or one for each (version 1). */
const hierarchies = (): string[] =>
  existsSync(join(ROOT, "cgroup.controllers"))
    ? [ROOT]
    : children(ROOT).filter((path) => existsSync(join(path, "tasks")));

const children = (path: string): string[] =>
  readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [join(path, entry.name)] : []));

/** Groups are directories of the kernel, which removes them one by one. */
function remove(path: string): void {
  for (const child of children(path)) remove(child);
  rmdirSync(path);
}
