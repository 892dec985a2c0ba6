/** The SQLite files as they were before migrations, beside the originals. No server may have them open. */
import { closeSync, constants, copyFileSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SQLITE_FILE } from "../store.ts";

/** The log holds changes that are not in the main file yet; the third file is made again. */
const PARTS = ["", "-wal"];
const MADE_AGAIN = ["-wal", "-shm"];
const KEPT = `${SQLITE_FILE}.before-upgrade`;

/** Replaces an earlier copy. */
export function keepDatabase(dataDir: string): void {
  for (const part of PARTS) {
    rmSync(join(dataDir, KEPT + part), { force: true });
    copyDurably(join(dataDir, SQLITE_FILE + part), join(dataDir, KEPT + part));
  }
}

/** The copy stays. */
export function bringBackDatabase(dataDir: string): void {
  const next = join(dataDir, `${SQLITE_FILE}.next`);
  copyDurably(join(dataDir, KEPT), next);
  for (const part of MADE_AGAIN) rmSync(join(dataDir, SQLITE_FILE + part), { force: true });
  renameSync(next, join(dataDir, SQLITE_FILE));
  copyDurably(join(dataDir, `${KEPT}-wal`), join(dataDir, `${SQLITE_FILE}-wal`));
}

/** A file that is not there is none to copy. Where the file system can share blocks, nothing is written. */
function copyDurably(from: string, to: string): void {
  if (!existsSync(from)) return;
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
  const file = openSync(to, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
