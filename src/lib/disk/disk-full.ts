/** Whether an error means that the file system is full: no bytes, no inodes or no quota left. */

/** SQLITE_FULL, and the two I/O errors that a full disk causes: SQLITE_IOERR_WRITE and SQLITE_IOERR_SHMSIZE. */
const SQLITE_CODES = new Set([13, 778, 4874]);
const SYSTEM_CODES = new Set(["ENOSPC", "EDQUOT"]);

export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  if (typeof code === "string" && SYSTEM_CODES.has(code)) return true;
  if (typeof errcode === "number" && SQLITE_CODES.has(errcode)) return true;
  return error.cause !== undefined && isDiskFull(error.cause);
}
