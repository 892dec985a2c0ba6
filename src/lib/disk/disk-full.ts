/** Whether a failure means that the file system has no room left, of bytes, inodes or a quota. */

/** SQLITE_FULL, and the input/output errors that a full disk shows itself by: of a write and of the shared memory file. */
const SQLITE_CODES = new Set([13, 778, 4874]);
const SYSTEM_CODES = new Set(["ENOSPC", "EDQUOT"]);

export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  if (typeof code === "string" && SYSTEM_CODES.has(code)) return true;
  if (typeof errcode === "number" && SQLITE_CODES.has(errcode)) return true;
  return error.cause !== undefined && isDiskFull(error.cause);
}
