/** Copies this executable to where a workload finds it. */
import { chmodSync, constants, copyFileSync, renameSync } from "node:fs";

/** In place at once and whole: a container that starts too early finds nothing, never half of it. */
export function install(target: string | undefined): void {
  if (target === undefined) throw new Error("usage: sandboxd install FILE");
  copyFileSync(process.execPath, `${target}.new`, constants.COPYFILE_FICLONE);
  chmodSync(`${target}.new`, 0o755);
  renameSync(`${target}.new`, target);
}
