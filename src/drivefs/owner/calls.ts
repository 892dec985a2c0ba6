/** System calls on descriptors, as promises. */

import * as callbacks from "node:fs";
import { type BigIntStats, constants, type Dir } from "node:fs";
import * as fs from "node:fs/promises";
import { promisify } from "node:util";
import { FileError } from "../errors.ts";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;

export const openFd = promisify(callbacks.open) as (path: Buffer, flags: number, mode?: number) => Promise<number>;
export const closeFd = promisify(callbacks.close);
export const truncateFd = promisify(callbacks.ftruncate);
export const ownFd = promisify(callbacks.fchown);
export const modeFd = promisify(callbacks.fchmod);
export const timesFd = promisify(callbacks.futimes);
const fsync = promisify(callbacks.fsync);
const fdatasync = promisify(callbacks.fdatasync);
const fstat = promisify(callbacks.fstat) as unknown as (fd: number, how: { bigint: true }) => Promise<BigIntStats>;

export const statFd = (fd: number): Promise<BigIntStats> => fstat(fd, { bigint: true });
/** The entry itself, where it is a link. */
export const look = (path: Buffer): Promise<BigIntStats> => fs.lstat(path, { bigint: true });
export const syncFd = (fd: number, dataOnly: boolean): Promise<void> => (dataOnly ? fdatasync(fd) : fsync(fd));

/** A folder is opened again by its descriptor, whatever happened to its name. */
export const openDir = (fd: number): Promise<Dir> =>
  fs.opendir(`/proc/self/fd/${fd}/.`, { encoding: "buffer" as BufferEncoding, bufferSize: 256 });

export function readFd(fd: number, bytes: number, offset: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const into = Buffer.allocUnsafe(bytes);
  const more = (filled: number): void =>
    callbacks.read(fd, into, filled, bytes - filled, offset + filled, (error, count) => {
      if (error) reject(error);
      else if (count === 0 || filled + count === bytes) resolve(into.subarray(0, filled + count));
      else more(filled + count);
    });
  if (bytes === 0) resolve(into);
  else more(0);
  return promise;
}

/** With a descriptor that appends, the system ignores the offset. */
export function writeFd(fd: number, from: Buffer, offset: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const more = (written: number): void =>
    callbacks.write(fd, from, written, from.length - written, offset + written, (error, count) => {
      if (error) reject(error);
      else if (written + count === from.length) resolve();
      else more(written + count);
    });
  if (from.length === 0) resolve();
  else more(0);
  return promise;
}

/** Opens a folder below `root` without following links; makes the folders that are missing. */
export async function folderAt(root: string, path: string): Promise<number> {
  let fd = await openFd(Buffer.from(root), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  for (const name of path.split("/").filter((part) => part !== "")) {
    if (name === "." || name === ".." || name.includes("\0")) throw new FileError("EINVAL");
    const above = fd;
    const at = Buffer.concat([Buffer.from(`/proc/self/fd/${above}/`), Buffer.from(name, "utf8")]);
    try {
      await fs.mkdir(at, { mode: 0o755 }).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EEXIST") throw error;
      });
      fd = await openFd(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    } finally {
      await closeFd(above);
    }
  }
  return fd;
}
