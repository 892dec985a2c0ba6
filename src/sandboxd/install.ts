/** Prepares the start of a workload in a container of its own: the executable, and the user of the image. */
import { chmodSync, constants, copyFileSync, renameSync, writeFileSync } from "node:fs";

/** In place at once and whole: a container that starts too early finds nothing, never half of it. */
export function install(target: string | undefined): void {
  if (target === undefined) throw new Error("usage: sandboxd install FILE");
  copyFileSync(process.execPath, `${target}.new`, constants.COPYFILE_FICLONE);
  chmodSync(`${target}.new`, 0o755);
  renameSync(`${target}.new`, target);
}

export function sign(target: string | undefined): void {
  if (target === undefined) throw new Error("usage: sandboxd sign FILE");
  writeFileSync(target, "", { flag: "wx" });
}
