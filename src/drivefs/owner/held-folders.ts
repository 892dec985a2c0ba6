/**
 * Folders of a drive by descriptor. Workloads make links in their drives and move folders while a question is answered.
 * So each folder on the way is opened relative to its parent and without following links; the last ones stay open, by
 * their identity, so that most questions open nothing.
 */
import { type BigIntStats, close, constants, fstat, open } from "node:fs";
import { promisify } from "node:util";
import { identityOf } from "../attributes.ts";
import { FileError } from "../errors.ts";
import { bytesOf } from "../wire.ts";
import type { DescriptorShare } from "./descriptor-shares.ts";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
const openFd = promisify(open);
const closeFd = promisify(close);
const statFd = promisify(fstat) as unknown as (fd: number, options: { bigint: true }) => Promise<BigIntStats>;

/** Folders that stay open for one mount. */
const HELD_MAX = 128;
export const PATH_BYTES_MAX = 4096;
const NAME_BYTES_MAX = 255;
/** Folders on the way to a file; a path of the longest kind has no more. */
const DEPTH_MAX = PATH_BYTES_MAX / 2;

export interface HeldFolder {
  fd: number;
  id: string;
  /** Questions that use the descriptor now. */
  users: number;
  isDropped: boolean;
}

export class HeldFolders {
  readonly #root: HeldFolder;
  readonly #device: bigint;
  readonly #share: DescriptorShare;
  readonly #held = new Map<string, HeldFolder>();

  private constructor(root: HeldFolder, device: bigint, share: DescriptorShare) {
    this.#root = root;
    this.#device = device;
    this.#share = share;
  }

  /** The caller gives the descriptor away. */
  static async open(fd: number, share: DescriptorShare): Promise<HeldFolders> {
    const stat = await statFd(fd, { bigint: true });
    return new HeldFolders({ fd, id: identityOf(stat), users: 0, isDropped: false }, stat.dev, share);
  }

  get rootFd(): number {
    return this.#root.fd;
  }

  /** Runs the work with the folder whose identity is `id`. ESTALE where another folder is at that path by now. */
  async use<T>(names: readonly string[], id: string, work: (folder: HeldFolder) => Promise<T>): Promise<T> {
    const folder = await this.#taken(names, id);
    try {
      return await work(folder);
    } finally {
      folder.users--;
      if (folder.isDropped && folder.users === 0) await closeFd(folder.fd);
    }
  }

  async close(): Promise<void> {
    for (const folder of [...this.#held.values(), this.#root]) {
      if (folder !== this.#root) this.#share.give();
      folder.isDropped = true;
      if (folder.users === 0) await closeFd(folder.fd).catch(() => {});
    }
    this.#held.clear();
  }

  /** Counted as used before anybody else gets a turn, who might drop the folder and close its descriptor. */
  async #taken(names: readonly string[], id: string): Promise<HeldFolder> {
    const known = this.#known(id);
    if (known) return known;
    const fd = await this.#walk(names);
    const found = await statFd(fd, { bigint: true });
    const again = this.#known(id);
    if (again || identityOf(found) !== id || found.dev !== this.#device) {
      await closeFd(fd);
      if (again) return again;
      throw new FileError("ESTALE");
    }
    const isHeld = this.#share.take();
    const folder = { fd, id, users: 1, isDropped: !isHeld };
    if (isHeld) this.#held.set(id, folder);
    this.#dropOldest();
    return folder;
  }

  #known(id: string): HeldFolder | null {
    const known = id === this.#root.id ? this.#root : this.#held.get(id);
    if (!known) return null;
    known.users++;
    if (known !== this.#root) {
      this.#held.delete(id);
      this.#held.set(id, known); // the newest is the last to be dropped
    }
    return known;
  }

  async #walk(names: readonly string[]): Promise<number> {
    if (names.length > DEPTH_MAX) throw new FileError("ENAMETOOLONG");
    let fd = -1;
    for (const name of names) {
      const above = fd;
      try {
        fd = await openFd(entryPath(above < 0 ? this.#root.fd : above, name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      } catch (error) {
        throw ["ENOENT", "ENOTDIR", "ELOOP"].includes(String((error as NodeJS.ErrnoException).code))
          ? new FileError("ESTALE")
          : error;
      } finally {
        if (above >= 0) await closeFd(above);
      }
    }
    if (fd < 0) throw new FileError("ESTALE");
    return fd;
  }

  #dropOldest(): void {
    for (const [id, folder] of this.#held) {
      if (this.#held.size <= HELD_MAX) return;
      this.#held.delete(id);
      this.#share.give();
      folder.isDropped = true;
      if (folder.users === 0) void closeFd(folder.fd).catch(() => {});
    }
  }
}

/** The path of one entry by the descriptor of its folder. Refuses what is no single name. */
export function entryPath(fd: number, name: string): Buffer {
  const bytes = bytesOf(checkedName(name));
  return Buffer.concat([Buffer.from(`/proc/self/fd/${fd}/`), bytes]);
}

function checkedName(name: unknown): string {
  if (typeof name !== "string" || name === "" || name === "." || name === "..") throw new FileError("EINVAL");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a NUL ends a path, and a character above 255 is no byte
  if (/[/\0]|[^\x00-\xff]/.test(name)) throw new FileError("EINVAL");
  if (name.length > NAME_BYTES_MAX) throw new FileError("ENAMETOOLONG");
  return name;
}
