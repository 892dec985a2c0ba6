/**
 * Puts an executable of the installation into a data folder. Node and the daemon have a hundred megabytes each, so both
 * places share one file (a hard link) where they can: on one file system, and where the file already has the owner and
 * the mode that a copy would get. Programs are replaced by rename, never written in place, so neither place changes
 * what the other one runs.
 */
import { chmodSync, chownSync, constants, copyFileSync, linkSync, realpathSync, statSync } from "node:fs";

const PROGRAM_MODE = 0o755;

export function putProgram(from: string, to: string): void {
  const source = realpathSync(from);
  if (isAsCopied(source) && tryLink(source, to)) return;
  copyFileSync(source, to, constants.COPYFILE_FICLONE);
  chownSync(to, ownId(), process.getgid?.() ?? -1);
  chmodSync(to, PROGRAM_MODE);
}

const ownId = (): number => process.getuid?.() ?? -1;

/**
 * Workloads see the owner of the file, and the owner may write to it: a user of a sandbox must not own the programs that
 * its root runs. Node's copy keeps the owner, so that the copy is given to the server.
 */
function isAsCopied(path: string): boolean {
  const { uid, mode } = statSync(path);
  return uid === ownId() && (mode & 0o7777) === PROGRAM_MODE;
}

/** False where the file system cannot link these two, such as on two file systems. */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (["EXDEV", "EPERM", "EMLINK", "ENOTSUP"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
}
