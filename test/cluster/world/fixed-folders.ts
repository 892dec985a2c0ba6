/**
 * Folders whose place no option of the programs changes. In the mount namespace of the cluster they are folders of the
 * cluster; on the machine they stay as they are, and those that were made to mount on are removed again.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";

const FOLDERS = [
  ...["/var/lib/cni", "/var/lib/kubelet", "/var/log/containers", "/run/containerd", "/run/netns"],
  "/tmp/hostpath_pv",
];

/** Makes those that are missing; the answer removes them again. */
export function makeFixedFolders(): () => void {
  const made = FOLDERS.filter((path) => !existsSync(path));
  for (const path of made) mkdirSync(path, { recursive: true });
  return () => {
    for (const path of made) rmdirSync(path);
  };
}

/** Inside of the mount namespace. Mounts of pods have to reach the kubelet, so these folders share theirs. */
export function coverFixedFolders(dir: string): void {
  for (const path of FOLDERS) {
    const own = join(dir, "fixed", path);
    mkdirSync(own, { recursive: true });
    execFileSync("mount", ["--bind", own, path]);
    execFileSync("mount", ["--make-shared", path]);
  }
}
