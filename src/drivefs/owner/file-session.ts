/**
 * Answers the questions of one mount with the files of one folder. The asking server is trusted to say which workload's
 * ids a file gets; paths and names come from workloads. No link is followed, no device or program with other rights is
 * made, and nothing outside of the folder is reached.
 */
import { type BigIntStats, constants, type Dirent } from "node:fs";
import * as fs from "node:fs/promises";
import { attributesOf, identityOf } from "../attributes.ts";
import { FileError } from "../errors.ts";
import { DATA_BYTES_MAX } from "../frames.ts";
import {
  type Answer,
  type AskName,
  type Asks,
  bytesOf,
  type EntryRef,
  type FileRef,
  latin,
  type NewFile,
} from "../wire.ts";
import * as calls from "./calls.ts";
import { type DescriptorShare, DescriptorShares } from "./descriptor-shares.ts";
import { FileHandles } from "./file-handles.ts";
import { entryPath, HeldFolders, PATH_BYTES_MAX } from "./held-folders.ts";
import { KEPT_BITS, modeOf, ownerIn, refuseSetIds, timesOf } from "./owners-and-modes.ts";

const { O_RDONLY, O_WRONLY, O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
const ACCESS = O_RDONLY | O_WRONLY | O_RDWR;
/** Names in one answer. */
const NAMES_MAX = 512;

type Answers = { [Name in AskName]: (args: Asks[Name], body: Buffer) => Promise<Answer> };

const WRITES: ReadonlySet<AskName> = new Set<AskName>([
  ...(["change", "makeFile", "makeFolder", "makeLink", "hardLink"] as const),
  ...(["remove", "removeFolder", "rename", "create", "write"] as const),
]);

export class FileSession {
  readonly #folders: HeldFolders;
  readonly #handles: FileHandles;
  readonly #share: DescriptorShare;
  readonly #isReadOnly: boolean;

  private constructor(folders: HeldFolders, isReadOnly: boolean, share: DescriptorShare) {
    this.#folders = folders;
    this.#handles = new FileHandles(share);
    this.#share = share;
    this.#isReadOnly = isReadOnly;
  }

  /** `path` is a folder below `files`; folders that are missing on the way are made. */
  static async open(
    files: string,
    path: string,
    isReadOnly: boolean,
    share: DescriptorShare = new DescriptorShares().of(""),
  ): Promise<FileSession> {
    if (!share.take()) throw new FileError("ENFILE", "The workspace has too many files of drives open on other nodes.");
    try {
      const root = await calls.folderAt(files, path);
      return new FileSession(await HeldFolders.open(root, share), isReadOnly, share);
    } catch (error) {
      share.give();
      throw error;
    }
  }

  answer(ask: AskName, args: Asks[AskName], body: Buffer): Promise<Answer> {
    const work = Object.hasOwn(this.#answers, ask) ? this.#answers[ask] : undefined;
    if (!work) throw new FileError("ENOSYS");
    if (this.#isReadOnly && WRITES.has(ask)) throw new FileError("EROFS");
    return (work as (args: Asks[AskName], body: Buffer) => Promise<Answer>)(args, body);
  }

  async close(): Promise<void> {
    await this.#handles.closeAll();
    await this.#folders.close();
    this.#share.give();
  }

  readonly #answers: Answers = {
    root: async () => told(await calls.statFd(this.#folders.rootFd)),
    lookup: (entry) => this.#at(entry, async (path) => told(await calls.look(path))),
    stat: async ({ fh, ...file }) =>
      told(fh === undefined ? await this.#look(file) : await calls.statFd(this.#handles.fd(fh))),
    change: (asked) => this.#change(asked),
    readLink: (file) => this.#at(file, async (path) => ({ body: await fs.readlink(path, { encoding: "buffer" }) })),
    makeFile: (file) => this.#made(file, async (path) => calls.closeFd(await calls.openFd(path, NEW_FILE, 0o600))),
    makeFolder: (folder) => this.#made(folder, (path) => fs.mkdir(path, { mode: 0o700 }), true),
    makeLink: ({ target, ...link }) => {
      const bytes = bytesOf(String(target));
      if (bytes.length === 0 || bytes.length >= PATH_BYTES_MAX || bytes.includes(0)) throw new FileError("EINVAL");
      return this.#made(link, (path) => fs.symlink(bytes, path));
    },
    hardLink: ({ file, to }) =>
      this.#at(file, (from) =>
        this.#at(to, async (path) => {
          const there = await calls.look(from);
          if (identityOf(there) !== file.id) throw new FileError("ESTALE");
          await fs.link(from, path);
          return told(await calls.look(path));
        }),
      ),
    remove: (entry) => this.#at(entry, async (path) => none(await fs.unlink(path))),
    removeFolder: (entry) => this.#at(entry, async (path) => none(await fs.rmdir(path))),
    rename: ({ from, to }) =>
      this.#at(from, (old) =>
        this.#at(to, async (next) => {
          await fs.rename(old, next);
          return { file: identityOf(await calls.look(next)) };
        }),
      ),
    open: ({ flags, ...file }) => this.#open(file, flags),
    create: (file) => this.#create(file),
    read: async ({ fh, offset, bytes }) => {
      if (!isCount(offset) || !isCount(bytes) || bytes > DATA_BYTES_MAX) throw new FileError("EINVAL");
      return { body: await calls.readFd(this.#handles.fd(fh), bytes, offset) };
    },
    write: async ({ fh, offset }, body) => {
      if (!isCount(offset) || body.length > DATA_BYTES_MAX) throw new FileError("EINVAL");
      return none(await calls.writeFd(this.#handles.fd(fh), body, offset));
    },
    sync: async ({ fh, dataOnly }) => none(await calls.syncFd(this.#handles.fd(fh), dataOnly)),
    syncFolder: (file) => this.#opened(file, async (fd) => none(await calls.syncFd(fd, false))),
    close: async ({ fh }) => none(await this.#handles.close(fh)),
    openFolder: (file) => this.#openFolder(file),
    names: async ({ fh }) => ({ entries: await namesOf(this.#handles.dir(fh)) }),
    space: async () => {
      const { bsize, blocks, bfree, bavail, files, ffree } = await fs.statfs(`/proc/self/fd/${this.#folders.rootFd}`);
      return { space: { bsize, blocks, bfree, bavail, files, ffree } };
    },
  };

  #at<T>({ folder, up, name }: EntryRef, work: (path: Buffer, folderFd: number) => Promise<T>): Promise<T> {
    if (!Array.isArray(folder) || typeof up !== "string") throw new FileError("EINVAL");
    return this.#folders.use(folder, up, ({ fd }) => work(entryPath(fd, name), fd));
  }

  async #look(file: FileRef): Promise<BigIntStats> {
    const found =
      file.name === "" ? await calls.statFd(this.#folders.rootFd) : await this.#at(file, (path) => calls.look(path));
    if (identityOf(found) !== file.id) throw new FileError("ESTALE");
    return found;
  }

  /** By descriptor: what is done with it cannot meet another file. Neither devices nor sockets are opened. */
  async #opened<T>(file: FileRef, work: (fd: number) => Promise<T>, flags = O_RDONLY): Promise<T> {
    const fd = await this.#descriptor(file, flags);
    try {
      return await work(fd);
    } finally {
      await calls.closeFd(fd);
    }
  }

  async #descriptor(file: FileRef, flags: number): Promise<number> {
    if (file.name === "") return calls.openFd(Buffer.from(`/proc/self/fd/${this.#folders.rootFd}/.`), O_RDONLY);
    return this.#at(file, async (path) => {
      const seen = await calls.look(path);
      if (identityOf(seen) !== file.id) throw new FileError("ESTALE");
      if (!seen.isFile() && !seen.isDirectory()) throw new FileError("EPERM");
      const fd = await calls.openFd(path, flags | O_NOFOLLOW | O_NONBLOCK);
      const found = await calls.statFd(fd);
      if (found.ino === seen.ino && found.dev === seen.dev) return fd;
      await calls.closeFd(fd);
      throw new FileError("ESTALE");
    });
  }

  async #change({ fh, changes, ...file }: Asks["change"]): Promise<Answer> {
    const { mode, uid, gid, size } = changes;
    if (size !== undefined && !isCount(size)) throw new FileError("EINVAL");
    const open = fh === undefined ? null : this.#handles.fd(fh);
    const before = open === null ? await this.#look(file) : await calls.statFd(open);
    if (mode !== undefined) refuseSetIds(mode, before.isDirectory());
    if (before.isSymbolicLink()) return this.#changeLink(file, changes);
    const flags = size === undefined ? O_RDONLY : O_WRONLY;
    const change = async (fd: number): Promise<void> => {
      if (size !== undefined) await calls.truncateFd(fd, size);
      if (uid !== undefined || gid !== undefined)
        await calls.ownFd(fd, uid ?? Number(before.uid), gid ?? Number(before.gid));
      if (mode !== undefined) await calls.modeFd(fd, mode & KEPT_BITS);
      const times = timesOf(changes, before);
      if (times) await calls.timesFd(fd, ...times);
    };
    if (open === null) await this.#opened(file, change, flags);
    else await change(open);
    return told(open === null ? await this.#look(file) : await calls.statFd(open));
  }

  #changeLink(file: FileRef, changes: Asks["change"]["changes"]): Promise<Answer> {
    return this.#at(file, async (path) => {
      const before = await calls.look(path);
      const { uid = Number(before.uid), gid = Number(before.gid) } = changes;
      if (changes.mode !== undefined || changes.size !== undefined) throw new FileError("EPERM");
      if (changes.uid !== undefined || changes.gid !== undefined) await fs.lchown(path, uid, gid);
      const times = timesOf(changes, before);
      if (times) await fs.lutimes(path, ...times);
      return told(await calls.look(path));
    });
  }

  /** Makes an entry that must not be there, and gives it the owner and the mode that were asked for. */
  async #made(file: NewFile, make: (path: Buffer) => Promise<unknown>, isFolder = false): Promise<Answer> {
    const mode = modeOf(file, isFolder);
    return this.#at(file, async (path, folderFd) => {
      await make(path);
      const made = await calls.look(path);
      const ref: FileRef = { ...file, id: identityOf(made) };
      const { uid, gid } = await ownerIn(folderFd, file);
      if (made.isSymbolicLink()) await fs.lchown(path, uid, gid);
      else
        await this.#opened(ref, async (fd) => {
          await calls.ownFd(fd, uid, gid);
          await calls.modeFd(fd, mode);
        });
      return told(await calls.look(path));
    });
  }

  async #open(file: FileRef, flags: number): Promise<Answer> {
    const access = this.#accessOf(flags);
    const fh = await this.#handles.open(async () => {
      const fd = await this.#descriptor(file, access);
      if ((await calls.statFd(fd)).isFile()) return { fd };
      await calls.closeFd(fd);
      throw new FileError("EISDIR");
    });
    return { fh };
  }

  async #create(file: NewFile & { flags: number }): Promise<Answer> {
    const [access, mode] = [this.#accessOf(file.flags), modeOf(file, false)];
    const fh = await this.#handles.open(() =>
      this.#at(file, async (path, folderFd) => {
        const fd = await calls.openFd(path, access | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
        try {
          const { uid, gid } = await ownerIn(folderFd, file);
          await calls.ownFd(fd, uid, gid);
          await calls.modeFd(fd, mode);
          return { fd };
        } catch (error) {
          await calls.closeFd(fd);
          throw error;
        }
      }),
    );
    return { fh, ...told(await calls.statFd(this.#handles.fd(fh))) };
  }

  #accessOf(flags: number): number {
    const access = flags & (ACCESS | O_APPEND);
    if (this.#isReadOnly && (access & ACCESS) !== O_RDONLY) throw new FileError("EROFS");
    return access;
  }

  async #openFolder(file: FileRef): Promise<Answer> {
    const open = async (fd: number) => ({ dir: await calls.openDir(fd) });
    return { fh: await this.#handles.open(() => this.#opened(file, open)) };
  }
}

const NEW_FILE = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;

const told = (stat: BigIntStats): Answer => ({ file: identityOf(stat), body: attributesOf(stat) });
const none = (_: unknown): Answer => ({});
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

const TYPES: readonly [keyof Pick<Dirent, "isFile" | "isDirectory" | "isSymbolicLink">, number][] = [
  ["isFile", 8],
  ["isDirectory", 4],
  ["isSymbolicLink", 10],
];

async function namesOf(dir: { read(): Promise<Dirent | null> }): Promise<[string, number][]> {
  const entries: [string, number][] = [];
  while (entries.length < NAMES_MAX) {
    const entry = await dir.read();
    if (entry === null) break;
    const name = latin(entry.name as unknown as Buffer);
    entries.push([name, TYPES.find(([is]) => entry[is]())?.[1] ?? 0]);
  }
  return entries;
}
