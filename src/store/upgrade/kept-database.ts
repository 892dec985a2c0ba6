/** A copy of the SQLite files from before the migrations, beside the originals. No server may have the files open. */
import { closeSync, constants, copyFileSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SQLITE_FILE } from "../store.ts";

/** The write-ahead log holds changes that are not in the main file yet. SQLite creates the -shm file again. */
const PARTS = ["", "-wal"];
const MADE_AGAIN = ["-wal", "-shm"];
const KEPT = `${SQLITE_FILE}.before-upgrade`;

/** Copies the database files, replacing an earlier copy. */
export function keepDatabase(dataDir: string): void {
  for (const part of PARTS) {
    rmSync(join(dataDir, KEPT + part), { force: true });
    copyDurably(join(dataDir, SQLITE_FILE + part), join(dataDir, KEPT + part));
  }
}

/** Restores the copied files; the copy stays. */
export function bringBackDatabase(dataDir: string): void {
  const next = join(dataDir, `${SQLITE_FILE}.next`);
  copyDurably(join(dataDir, KEPT), next);
  for (const part of MADE_AGAIN) rmSync(join(dataDir, SQLITE_FILE + part), { force: true });
  renameSync(next, join(dataDir, SQLITE_FILE));
  copyDurably(join(dataDir, `${KEPT}-wal`), join(dataDir, `${SQLITE_FILE}-wal`));
}

/** Copies a file if it exists. File systems with reflinks share the blocks instead of writing them. */
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
