/**
 * One process owns a data folder. The lock is SQLite's own file lock, so the operating system releases it however the
 * process ends. The note beside it only tells a second process who holds the lock.
 */
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { PlatformError } from "../../contract/errors.ts";
import { makeDataFolder } from "../../lib/data-folder.ts";
import { isDiskFull } from "../../lib/disk/disk-full.ts";
import type { Running } from "../../lib/lifecycle.ts";

const SQLITE_BUSY = 5;

/** Folder of a restore in the data folder. */
export const RESTORING = "restoring";
/** There from the first change of a restore until its last one. */
export const SWAP_FILE = join(RESTORING, "swap");

export interface LockOptions {
  /** The holder may find a restore that did not end, and settles it. */
  restores?: boolean;
}

export function lockDataFolder(dataDir: string, note: string, { restores = false }: LockOptions = {}): Running {
  makeDataFolder(dataDir);
  const noteFile = join(dataDir, "berth.pid");
  const lock = lockFolder(dataDir, "berth.lock");
  if (!lock) {
    throw new PlatformError(
      "conflict",
      `The data folder ${dataDir} is in use by another Berth (${readNote(noteFile)}). Stop that one, or choose another BERTH_DATA: several servers of one PostgreSQL have a folder each.`,
    );
  }
  if (!restores && existsSync(join(dataDir, SWAP_FILE))) {
    void lock.stop();
    throw new PlatformError(
      "conflict",
      `A restore into ${dataDir} did not end, so its files and its records may not fit together. Run \`berth restore\` again.`,
    );
  }
  writeFileSync(noteFile, note, { mode: 0o600 });
  return lock;
}

/** Null while another process holds the lock of this name. */
export function lockFolder(folder: string, name: string): Running | null {
  const file = join(folder, name);
  keepToOwner(folder, file);
  const lock = new DatabaseSync(file);
  try {
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (error) {
    lock.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return null;
    throw cannotLock(folder, error);
  }
  return {
    async stop() {
      if (lock.isOpen) lock.close();
    },
  };
}

/**
 * Whoever may read a file may hold a lock on it, and so keep the server from starting. The file is not opened when it is
 * there: closing it would release a lock that this process has on it.
 */
function keepToOwner(folder: string, file: string): void {
  try {
    if (!existsSync(file)) writeFileSync(file, "", { mode: 0o600, flag: "wx" });
    chmodSync(file, 0o600);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    // Another process was faster, or the file system keeps no rights.
    if (!["EEXIST", "EPERM", "ENOTSUP"].includes(code)) throw cannotLock(folder, error);
  }
}

/** The error for a file system that refuses locks, although no process holds this one. */
function cannotLock(dataDir: string, error: unknown): PlatformError {
  const reason = isDiskFull(error)
    ? "its disk is full. Free some space on it"
    : `${(error as Error).message}. Check its disk and who owns it`;
  return new PlatformError("unavailable", `The folder ${dataDir} cannot be locked: ${reason}.`, { cause: error });
}

function readNote(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return "which left no note"; // the other process is just starting
  }
}
