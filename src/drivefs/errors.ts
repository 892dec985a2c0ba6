/** Errors of files as numbers of the system. */
import { constants } from "node:os";

type Code = keyof typeof constants.errno;

export class FileError extends Error {
  readonly code: Code;
  constructor(code: Code, message: string = code) {
    super(message);
    this.code = code;
  }
}

/** The connection ended before the answer came: what was asked was done, or it was not. */
export class ConnectionBroke extends FileError {
  constructor() {
    super("EIO", "the connection broke");
  }
}

/** EIO for what is no error of a file. */
export function errnoOf(error: unknown): number {
  const code = (error as { code?: unknown } | null)?.code;
  const table: Readonly<Record<string, number>> = constants.errno;
  return (typeof code === "string" ? table[code] : undefined) ?? constants.errno.EIO;
}
