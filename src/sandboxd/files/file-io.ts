/**
 * Opening, reading and writing single files. Devices, FIFOs and sockets are refused: reading them may never end, and
 * opening them may block. The check is on the open descriptor, so that the file cannot be swapped after the check.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  mkdirSync,
  openSync,
  read,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  write,
  writeSync,
} from "node:fs";
import { promisify } from "node:util";
import type { SandboxUser } from "../../contract/sandbox-wire.ts";
import { ApiError, errnoOf } from "../http/api-error.ts";
import type { TextSource } from "../http/json-stream.ts";
import { randomWord } from "../random-word.ts";
import { type BytePath, folderOf, fromBytes, fromText, joinPath, toBytes, toText } from "./byte-path.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_TRUNC, O_WRONLY } = constants;
const readAsync = promisify(read);
const writeAsync = promisify(write);

/** Smaller reads are synchronous. Larger ones use the thread pool, so that they do not block other requests. */
const SYNC_READ_BYTES_MAX = 256 * 1024;

export interface OpenFile {
  fd: number;
  stats: Stats;
}

/** Opens a regular file for reading. The caller closes the descriptor. */
export function openRegular(path: BytePath): OpenFile {
  const fd = openSync(toBytes(path), O_RDONLY | O_NONBLOCK);
  const stats = fstatSync(fd);
  if (stats.isFile()) return { fd, stats };
  closeSync(fd);
  throw notRegular(path, stats);
}

export function notRegular(path: BytePath, stats: Stats): ApiError {
  const what = stats.isDirectory() ? "a directory" : stats.isFIFO() ? "a FIFO" : "a device or socket";
  return new ApiError(422, `${toText(path)} is ${what}, not a regular file.`);
}

/** The file's content as text. Files of /proc report size 0, so reading goes on until the end. */
export const textSource = ({ fd, stats }: OpenFile): TextSource => ({
  sizeHint: stats.size,
  read: (position, buffer) => readAt({ fd, stats }, position, buffer),
});

export function readAt({ fd, stats }: OpenFile, position: number, buffer: Uint8Array): number | Promise<number> {
  if (stats.size <= SYNC_READ_BYTES_MAX) return readSync(fd, buffer, 0, buffer.byteLength, position);
  return readAsync(fd, buffer, 0, buffer.byteLength, position).then(({ bytesRead }) => bytesRead);
}

export interface WriteOptions {
  /** Undefined: 0644 for a new file, unchanged for an existing one. */
  mode: number | undefined;
  user: SandboxUser | undefined;
}

export const DEFAULT_FILE_MODE = 0o644;
export const DEFAULT_FOLDER_MODE = 0o755;

/** Writes the whole content in place: links, owner and watchers of an existing file are kept. */
export function writeWhole(path: BytePath, content: string, { mode, user }: WriteOptions): void {
  makeFolder(folderOf(path), DEFAULT_FOLDER_MODE, user);
  const existing = statSync(toBytes(path), { throwIfNoEntry: false });
  if (existing && !existing.isFile()) throw notRegular(path, existing);
  const fd = openSync(toBytes(path), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, DEFAULT_FILE_MODE);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw notRegular(path, stats);
    const bytes = Buffer.from(content, "utf8");
    for (let at = 0; at < bytes.byteLength; ) at += writeSync(fd, bytes, at, bytes.byteLength - at);
    if (mode !== undefined) fchmodSync(fd, mode);
    if (user && !existing) fchownSync(fd, user.uid, user.gid);
  } finally {
    closeSync(fd);
  }
}

/** How the names of files begin that are not complete yet. */
export const ASIDE_PREFIX = ".upload-";

/**
 * A file that arrives in pieces. The bytes go to a hidden file beside the target, which replaces the target when it is
 * complete, so that a broken upload leaves the old content alone.
 */
export class IncomingFile {
  readonly #target: BytePath;
  readonly #aside: BytePath;
  readonly #existing: Stats | undefined;
  #fd: number;
  size = 0;

  constructor(path: BytePath, user: SandboxUser | undefined) {
    makeFolder(folderOf(path), DEFAULT_FOLDER_MODE, user);
    this.#existing = statSync(toBytes(path), { throwIfNoEntry: false });
    if (this.#existing && !this.#existing.isFile()) throw notRegular(path, this.#existing);
    this.#target = this.#existing ? throughLinks(path) : path;
    this.#aside = joinPath(folderOf(this.#target), fromText(`${ASIDE_PREFIX}${randomWord(12)}`));
    this.#fd = openSync(toBytes(this.#aside), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, DEFAULT_FILE_MODE);
  }

  async write(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.byteLength; ) {
      const { bytesWritten } = await writeAsync(this.#fd, chunk, at, chunk.byteLength - at, this.size + at);
      at += bytesWritten;
    }
    this.size += chunk.byteLength;
  }

  commit({ mode, user }: WriteOptions): void {
    fchmodSync(this.#fd, mode ?? (this.#existing ? this.#existing.mode & 0o7777 : DEFAULT_FILE_MODE));
    const owner = this.#existing ?? user;
    if (owner) giveTo(this.#fd, owner);
    closeSync(this.#fd);
    this.#fd = -1;
    renameSync(toBytes(this.#aside), toBytes(this.#target));
  }

  /** Removes the hidden file. Does nothing after commit. */
  discard(): void {
    if (this.#fd === -1) return;
    closeSync(this.#fd);
    this.#fd = -1;
    rmSync(toBytes(this.#aside), { force: true });
  }
}

/** Changes the owner, which only root can do. A file that is replaced belongs to the user who replaced it. */
export function giveTo(fd: number, { uid, gid }: Pick<SandboxUser, "uid" | "gid">): void {
  try {
    fchownSync(fd, uid, gid);
  } catch (error) {
    if (errnoOf(error) !== "EPERM") throw error;
  }
}

/** Resolves symbolic links, so that a write replaces the link's target and not the link. */
export const throughLinks = (path: BytePath): BytePath =>
  fromBytes(realpathSync(toBytes(path), { encoding: "buffer" }));

/** Makes a folder and its parents; new ones belong to the user. An existing folder is not changed. */
export function makeFolder(path: BytePath, mode: number, user: SandboxUser | undefined): void {
  const stats = statSync(toBytes(path), { throwIfNoEntry: false });
  if (stats?.isDirectory()) return;
  if (stats) throw new ApiError(422, `${toText(path)} exists and is not a directory.`);
  if (path !== "/") makeFolder(folderOf(path), DEFAULT_FOLDER_MODE, user);
  try {
    mkdirSync(toBytes(path), { mode });
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
    // Another process created the path meanwhile. Try again: the path may also be something other than a folder.
    makeFolder(path, mode, user);
    return;
  }
  chmodSync(toBytes(path), mode);
  if (user) chownSync(toBytes(path), user.uid, user.gid);
}
