/**
 * Changes files below one folder and nowhere else. Every folder on the way is opened by itself, relative to the
 * descriptor of its parent and without following links, and every change names one entry of such a descriptor. A name
 * that leads out of the folder therefore cannot be expressed, and a link never becomes part of a path.
 */
import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  futimesSync,
  lchownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  type Stats,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { quoted, refused } from "./refusal.ts";

const { O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW } = constants;

/** A folder of the tree, held open. */
export interface Folder {
  readonly fd: number;
  /** Names of the folders from the root to this one, which is the last. */
  readonly names: readonly string[];
  readonly path: string;
}

export interface Owner {
  uid: number;
  gid: number;
}

export const NAME_BYTES_MAX = 255; // of one entry, the limit of Linux file systems
/** Deepest nesting of folders. Deep dependency trees reach about 40. */
export const DEPTH_MAX = 128;
/**
 * Most folders kept open: more than two full chains, so that two paths can be used together; below common fd limits.
 */
const OPEN_MAX = 2 * DEPTH_MAX + 44;

export class Tree {
  readonly root: Folder;
  readonly #byDescriptor: boolean;
  /** Open folders by path, the most recently used last. */
  readonly #open = new Map<string, Folder>();

  constructor(path: string) {
    this.root = { fd: openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), names: [], path };
    // Systems other than Linux have no /proc/self/fd; there every part of a path is checked before it is used.
    this.#byDescriptor = existsSync(`/proc/self/fd/${this.root.fd}`);
  }

  /** Closes every folder but the root. */
  rest(): void {
    for (const { fd } of this.#open.values()) closeSync(fd);
    this.#open.clear();
  }

  close(): void {
    this.rest();
    closeSync(this.root.fd);
  }

  lstat(folder: Folder, name: string): Stats | null {
    return lstatSync(this.#at(folder, name), { throwIfNoEntry: false }) ?? null;
  }

  readlink(folder: Folder, name: string): string {
    return readlinkSync(this.#at(folder, name));
  }

  /** The folder if it is still open from before, otherwise null. */
  opened(folder: Folder, name: string): Folder | null {
    const key = keyOf(folder, name);
    const known = this.#open.get(key);
    if (!known) return null;
    this.#open.delete(key);
    this.#open.set(key, known);
    return known;
  }

  /** Opens a folder. Throws ENOTDIR for a link. */
  open(folder: Folder, name: string): Folder {
    const known = this.opened(folder, name);
    if (known) return known;
    const path = this.#at(folder, name);
    const fd = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const opened = { fd, names: [...folder.names, name], path: this.#byDescriptor ? "" : path };
    this.#open.set(keyOf(folder, name), opened);
    for (const [key, { fd: oldest }] of this.#open) {
      if (this.#open.size <= OPEN_MAX) break;
      this.#open.delete(key);
      closeSync(oldest);
    }
    return opened;
  }

  /** Opens the folder at a path without links; null when there is none. */
  find(names: readonly string[]): Folder | null {
    let folder = this.root;
    for (const name of names) {
      if (!this.opened(folder, name) && !this.lstat(folder, name)?.isDirectory()) return null;
      folder = this.open(folder, name);
    }
    return folder;
  }

  /**
   * The entry at a path whose folders are known not to be links, in a tree that no longer changes. Unlike `find`, it
   * keeps no descriptor open, so that a hundred trees can be searched.
   */
  look(names: readonly string[]): { stat: Stats; link: string | null } | null {
    const path = this.#at(this.root, names.join("/"));
    const stat = lstatSync(path, { throwIfNoEntry: false });
    return stat ? { stat, link: stat.isSymbolicLink() ? readlinkSync(path) : null } : null;
  }

  makeFolder(folder: Folder, name: string): Folder {
    if (folder.names.length >= DEPTH_MAX) throw refused("its folders are nested too deep");
    mkdirSync(this.#at(folder, name), { mode: 0o700 });
    return this.open(folder, name);
  }

  /** Creates a file for writing and reading. The caller closes it. */
  createFile(folder: Folder, name: string): number {
    return openSync(this.#at(folder, name), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  }

  makeLink(folder: Folder, name: string, target: string, owner: Owner | null, mtimeS: number): void {
    const path = this.#at(folder, name);
    symlinkSync(target, path);
    if (owner) lchownSync(path, owner.uid, owner.gid);
    lutimesSync(path, mtimeS, mtimeS);
  }

  /** Makes a hard link. The system call does not follow a link as the last name. */
  linkFile(from: Folder, fromName: string, to: Folder, toName: string): void {
    linkSync(this.#at(from, fromName), this.#at(to, toName));
  }

  /** Removes an entry of any kind and reports the path of each entry removed with it. */
  remove(folder: Folder, name: string, onRemoved: (place: string) => void): void {
    const path = this.#at(folder, name);
    if (lstatSync(path).isDirectory()) {
      const inner = this.open(folder, name);
      for (const each of readdirSync(this.#at(inner, "."))) this.remove(inner, each, onRemoved);
      this.#forget(folder, name);
      rmdirSync(path);
    } else unlinkSync(path);
    onRemoved(keyOf(folder, name));
  }

  #forget(folder: Folder, name: string): void {
    const key = keyOf(folder, name);
    const known = this.#open.get(key);
    if (!known) return;
    this.#open.delete(key);
    closeSync(known.fd);
  }

  #at(folder: Folder, name: string): string {
    return this.#byDescriptor ? `/proc/self/fd/${folder.fd}/${name}` : `${folder.path}/${name}`;
  }
}

/** The path of an entry as text, unique within the tree. */
export const keyOf = ({ names }: Folder, name: string): string =>
  names.length === 0 ? name : `${names.join("/")}/${name}`;

/** Sets the owner first: changing it clears set-id bits. */
export function settle(fd: number, owner: Owner | null, mode: number, mtimeS: number | null): void {
  if (owner) fchownSync(fd, owner.uid, owner.gid);
  fchmodSync(fd, mode);
  if (mtimeS !== null) futimesSync(fd, mtimeS, mtimeS);
}

export interface NameRules {
  pathBytesMax: number;
  depthMax: number;
}

/** Splits a path of an archive into names; each is safe to use as an entry of a folder. */
export function namesIn(path: string, { pathBytesMax, depthMax }: NameRules): string[] {
  if (path.includes("\0")) throw refused("a path in it has a forbidden character");
  if (Buffer.byteLength(path) > pathBytesMax) throw refused("a path in it is too long");
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) throw refused(`the path ${quoted(path)} in it leads out of the folder`);
  if (names.length > depthMax) throw refused("its folders are nested too deep");
  if (names.some((name) => Buffer.byteLength(name) > NAME_BYTES_MAX)) throw refused("a name in it is too long");
  return names;
}
