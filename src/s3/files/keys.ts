/**
 * A key of S3 is a path of the drive. Not every key can be one: each part between slashes is a file name, so it is
 * neither empty nor `.` nor `..` and has at most 255 bytes. A key with a slash at its end names a folder.
 */
import { S3Error } from "../wire/s3-error.ts";

export const KEY_BYTES_MAX = 1024;
const NAME_BYTES_MAX = 255;

export interface KeyPath {
  key: string;
  /** Names of the folders above. */
  parents: string[];
  /** The last name. */
  name: string;
  isFolder: boolean;
}

export function pathOfKey(key: string): KeyPath {
  if (Buffer.byteLength(key) > KEY_BYTES_MAX)
    throw new S3Error("KeyTooLongError", "Your key is too long", { MaxSizeAllowed: String(KEY_BYTES_MAX) });
  const isFolder = key.endsWith("/");
  const names = (isFolder ? key.slice(0, -1) : key).split("/");
  const long = names.find((name) => Buffer.byteLength(name) > NAME_BYTES_MAX);
  if (long !== undefined)
    throw new S3Error(
      "KeyTooLongError",
      `An object is a file of the drive: a part of its key between slashes has at most ${NAME_BYTES_MAX} bytes.`,
    );
  const bad = names.find((name) => name === "" || name === "." || name === ".." || name.includes("\0"));
  if (bad !== undefined)
    throw new S3Error(
      "InvalidArgument",
      "An object is a file of the drive: no part of its key between slashes is empty, '.', '..' or has a NUL byte.",
    );
  return { key, parents: names.slice(0, -1), name: names.at(-1) ?? "", isFolder };
}

/** Whether a key can be a path; a name that cannot is one that no object has. */
export function isPossibleKey(key: string): boolean {
  try {
    pathOfKey(key);
    return true;
  } catch {
    return false;
  }
}
