/**
 * Folders of a drive, reached by descriptor. Workloads make links in their drives, and change them while a request
 * runs. So each folder on the way is opened by itself, relative to the descriptor of its parent and without following
 * links, and every change names one entry of such a descriptor: no link becomes part of a path.
 */
import { type BigIntStats, constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open } from "node:fs/promises";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;

/** What the system says of a name that is no folder, or no plain file. */
const ABSENT = new Set(["ENOENT", "ENOTDIR", "ELOOP", "ENXIO", "ENAMETOOLONG"]);

export const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "";

/** Null in place of an error that says that there is no such entry. */
export async function orNull<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (ABSENT.has(codeOf(error))) return null;
    throw error;
  }
}

export class Folder implements AsyncDisposable {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  static async open(path: string): Promise<Folder> {
    return new Folder(await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  }

  /** The path of an entry by the descriptor of this folder. `name` is one name without slashes. */
  at(name: string): string {
    return `/proc/self/fd/${this.#handle.fd}/${name}`;
  }

  child(name: string): Promise<Folder | null> {
    return orNull(Folder.open(this.at(name)));
  }

  /** Null when there is no entry of this name. The entry itself, where it is a link. */
  look(name: string): Promise<BigIntStats | null> {
    return orNull(lstat(this.at(name), { bigint: true }));
  }

  stat(): Promise<BigIntStats> {
    return this.#handle.stat({ bigint: true });
  }

  /** Opens a plain file for reading; null for everything else, links among it. */
  async file(name: string): Promise<{ handle: FileHandle; stat: BigIntStats } | null> {
    if (!(await this.look(name))?.isFile()) return null;
    // A pipe that was put there since would wait for a writer.
    const handle = await orNull(open(this.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    if (!handle) return null;
    const stat = await handle.stat({ bigint: true });
    if (stat.isFile()) return { handle, stat };
    await handle.close();
    return null;
  }

  /** Opens a folder, and makes it where there is none. Null when the name is something else. */
  async made(name: string, settle: (folder: Folder) => Promise<void>): Promise<Folder | null> {
    const there = await this.child(name);
    if (there) return there;
    try {
      await mkdir(this.at(name), { mode: 0o755 });
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      return this.child(name);
    }
    const folder = await this.child(name);
    try {
      if (folder) await settle(folder);
      await this.sync();
    } catch (error) {
      await folder?.close();
      throw error;
    }
    return folder;
  }

  /** Changes the owner where this server may. */
  async own({ uid, gid }: { uid: bigint; gid: bigint }): Promise<void> {
    if (process.getuid?.() === 0) await this.#handle.chown(Number(uid), Number(gid));
  }

  /** New and removed entries are on the disk afterwards. */
  sync(): Promise<void> {
    return this.#handle.sync();
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** The folder at these names below a root; null where one of them is no folder. */
export async function folderAt(root: string, names: readonly string[]): Promise<Folder | null> {
  let folder: Folder | null = await Folder.open(root);
  for (const name of names) {
    const above: Folder = folder;
    folder = await above.child(name).finally(() => above.close());
    if (!folder) return null;
  }
  return folder;
}

/** The folder at these names, which may be closed in between: the next use opens it again. */
export class HeldFolder implements AsyncDisposable {
  readonly names: readonly string[];
  readonly #root: string;
  #folder: Folder | null;

  /** `folder`: the folder at these names, where it is open already. */
  constructor(root: string, names: readonly string[], folder: Folder | null = null) {
    this.#root = root;
    this.names = names;
    this.#folder = folder;
  }

  /** Null where one of the names is no folder, or none any more. */
  async open(): Promise<Folder | null> {
    this.#folder ??= await folderAt(this.#root, this.names);
    return this.#folder;
  }

  /** Null where the name is no folder. */
  async child(name: string): Promise<HeldFolder | null> {
    const folder = await (await this.open())?.child(name);
    return folder ? new HeldFolder(this.#root, [...this.names, name], folder) : null;
  }

  async close(): Promise<void> {
    const folder = this.#folder;
    this.#folder = null;
    await folder?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * The same as folderAt; makes the folders that are missing, each with the owner of the folder above, and tells `onMade` of each.
 * Null where a file is in the way.
 */
export async function folderMadeAt(
  root: string,
  names: readonly string[],
  onMade: (folder: Folder) => Promise<void>,
): Promise<Folder | null> {
  let folder: Folder | null = await Folder.open(root);
  for (const name of names) {
    const above: Folder = folder;
    const owner = await above.stat();
    const settle = async (made: Folder): Promise<void> => {
      await made.own(owner);
      await onMade(made);
    };
    folder = await above.made(name, settle).finally(() => above.close());
    if (!folder) return null;
  }
  return folder;
}
