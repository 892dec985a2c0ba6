/** The objects of one drive: its files, and the folders that stand for keys with a slash at their end. */
import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { type FileHandle, link, mkdir, opendir, rename, rm, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../lib/time/clock.ts";
import { S3Error } from "../wire/s3-error.ts";
import { codeOf, type Folder, folderAt, folderMadeAt, orNull } from "./folder.ts";
import { type KeyPath, pathOfKey } from "./keys.ts";
import { PartUploads, type Upload } from "./part-uploads.ts";
import { type ObjectRecord, Records } from "./records.ts";
import { StagedFile, type StagingDeps } from "./staged-file.ts";
import { requireQuota } from "./use-meter.ts";

export interface DriveFolders {
  /** The drive's files, which workloads see. */
  files: string;
  /** A folder on the same file system that no workload sees. */
  work: string;
}

export interface StoredObject {
  key: string;
  bytes: number;
  modifiedMs: number;
  /** Without quotation marks. */
  etag: string;
  record: ObjectRecord | null;
}

/** Refuses a write; called while nobody else writes the key through S3. */
export type WriteCheck = (there: StoredObject | null) => void;

export interface WriteOptions {
  record: ObjectRecord;
  check: WriteCheck;
  /** Nothing may be there, not even what a workload writes at this moment. */
  isNew: boolean;
}

/** A folder on the way may be removed by a delete of its last object meanwhile. */
const TRIES = 8;
const FILE_MODE = 0o644;
const IMPLIED: ObjectRecord = { etag: "", headers: {}, metadata: {}, tags: {}, checksum: null, isImplied: true };

export interface DriveObjectsDeps extends StagingDeps {
  clock: Clock;
}

export class DriveObjects {
  readonly folders: DriveFolders;
  readonly staging: string;
  readonly uploads: PartUploads;
  readonly #records: Records;
  readonly #deps: DriveObjectsDeps;
  readonly #turns = new Map<string, Promise<unknown>>();

  private constructor(folders: DriveFolders, deps: DriveObjectsDeps) {
    this.folders = folders;
    this.#deps = deps;
    this.staging = join(folders.work, "staged");
    this.uploads = new PartUploads(join(folders.work, "uploads"), deps);
    this.#records = new Records(join(folders.work, "records"));
  }

  /** Removes the unfinished files of an earlier server: nobody was told that they are there. */
  static async open(folders: DriveFolders, deps: DriveObjectsDeps): Promise<DriveObjects> {
    const objects = new DriveObjects(folders, deps);
    await rm(objects.staging, { recursive: true, force: true });
    for (const name of ["staged", "uploads", "records"])
      await mkdir(join(folders.work, name), { recursive: true, mode: 0o700 });
    await objects.uploads.sweep();
    return objects;
  }

  /** `bytes` count against the quota from now on; 0 for bytes that count already, as those of parts do. */
  stage(bytes: number): Promise<StagedFile> {
    return StagedFile.create(this.staging, bytes, this.#deps);
  }

  stagePart(upload: Upload, bytes: number): Promise<StagedFile> {
    return StagedFile.create(this.uploads.folderOf(upload), bytes, this.#deps);
  }

  async head(key: string): Promise<StoredObject | null> {
    const path = pathOfKey(key);
    await using folder = await folderAt(this.folders.files, path.parents);
    return folder && (await this.#objectIn(folder, path)); // before the folder is closed
  }

  /** The caller closes the handle; it is null for a folder. */
  async open(key: string): Promise<{ object: StoredObject; handle: FileHandle | null } | null> {
    const path = pathOfKey(key);
    await using folder = await folderAt(this.folders.files, path.parents);
    if (!folder) return null;
    if (path.isFolder) {
      const object = await this.#objectIn(folder, path);
      return object && { object, handle: null };
    }
    const file = await folder.file(path.name);
    return file && { object: await this.describe(key, file.stat), handle: file.handle };
  }

  /** An object from what the system says of its file. */
  async describe(key: string, stat: BigIntStats): Promise<StoredObject> {
    const record = await this.#records.find(stat);
    return {
      key,
      bytes: stat.isDirectory() ? 0 : Number(stat.size),
      modifiedMs: Number(stat.mtimeMs),
      etag: record?.etag || etagOfFile(stat),
      record,
    };
  }

  /** Whether a folder is an object of its own: put as one, or empty and not made on the way to another object. */
  async isObject(folder: Folder): Promise<boolean> {
    const record = await this.#records.find(await folder.stat());
    return record ? !record.isImplied : hasNoEntry(folder);
  }

  /** Gives a staged file its name. The object is there with all its bytes afterwards, or nothing has changed. */
  async put(key: string, staged: StagedFile, options: WriteOptions): Promise<StoredObject> {
    const path = pathOfKey(key);
    return this.#inTurn(key, async () => {
      for (let tries = 1; ; tries += 1) {
        await using folder = await this.#madeFolder(path);
        const there = await folder.look(path.name);
        if (there?.isDirectory()) throw inTheWay(key, "a folder");
        options.check(there?.isFile() ? await this.describe(key, there) : null);
        const owner = there?.isFile() ? there : await folder.stat();
        const mode = there?.isFile() ? Number(there.mode) & 0o777 : FILE_MODE;
        const stat = await staged.settle({ owner, mode }, this.#deps.clock.now());
        const newObjects = there ? 0 : 1;
        requireQuota(this.#deps.meter, 0, newObjects);
        try {
          await this.#records.write(stat, options.record);
          if (options.isNew) await link(staged.path, folder.at(path.name));
          else await rename(staged.path, folder.at(path.name));
        } catch (error) {
          this.#deps.meter.add(0, -newObjects);
          await this.#records.remove(stat);
          if (codeOf(error) === "ENOENT" && tries < TRIES) continue;
          if (codeOf(error) === "EEXIST") throw exists();
          if (codeOf(error) === "EISDIR") throw inTheWay(key, "a folder");
          throw error;
        }
        if (!options.isNew) staged.kept();
        staged.stored(Number(stat.size) - (there ? freedBytes(there) : 0));
        await folder.sync();
        if (there?.isFile() && there.nlink === 1n) await this.#records.remove(there);
        return this.describe(key, stat);
      }
    });
  }

  /** Makes the folder of a key with a slash at its end. */
  async putFolder(key: string, { record, check }: Omit<WriteOptions, "isNew">): Promise<StoredObject> {
    const path = pathOfKey(key);
    return this.#inTurn(key, async () => {
      const there = await this.head(key);
      check(there);
      if (!there) requireQuota(this.#deps.meter, 0, 1);
      await using folder = await this.#folderMade([...path.parents, path.name]);
      if (!folder) {
        if (!there) this.#deps.meter.add(0, -1);
        throw inTheWay(key, "a file");
      }
      const stat = await folder.stat();
      await this.#records.write(stat, record);
      return this.describe(key, stat);
    });
  }

  /** Replaces the record of an object; null when the object is not there. */
  async amend(key: string, change: (record: ObjectRecord) => ObjectRecord): Promise<StoredObject | null> {
    const path = pathOfKey(key);
    return this.#inTurn(key, async () => {
      await using folder = await folderAt(this.folders.files, path.parents);
      const there = folder && (await this.#objectIn(folder, path));
      const stat = folder && (await folder.look(path.name));
      if (!there || !stat) return null;
      const empty = { etag: there.etag, headers: {}, metadata: {}, tags: {}, checksum: null };
      await this.#records.write(stat, change(there.record ?? empty));
      return this.describe(key, stat);
    });
  }

  /** Removes an object. The folders above stay: a workload may have one of them mounted. */
  async remove(key: string, check: WriteCheck = () => {}): Promise<void> {
    const path = pathOfKey(key);
    await this.#inTurn(key, async () => {
      await using folder = await folderAt(this.folders.files, path.parents);
      const there = folder && (await this.#objectIn(folder, path));
      check(there);
      // A folder that is empty by now counts too, though it was made on the way to another object.
      const stat = folder && (there || path.isFolder) && (await folder.look(path.name));
      if (!stat) return;
      if (path.isFolder) {
        const isGone = await isRemovedEmpty(folder, path.name);
        if (there || isGone) await this.#records.remove(stat);
        if (isGone) this.#deps.meter.add(0, -1);
      } else {
        await orNull(unlink(folder.at(path.name)));
        this.#deps.meter.add(-freedBytes(stat), -1);
        if (stat.nlink === 1n) await this.#records.remove(stat);
      }
      await folder.sync();
    });
  }

  async #madeFolder({ key, parents }: KeyPath): Promise<Folder> {
    const folder = await this.#folderMade(parents);
    if (!folder) throw inTheWay(key, "a file");
    return folder;
  }

  #folderMade(names: readonly string[]): Promise<Folder | null> {
    return folderMadeAt(this.folders.files, names, async (made) => this.#records.write(await made.stat(), IMPLIED));
  }

  async #objectIn(folder: Folder, { key, name, isFolder }: KeyPath): Promise<StoredObject | null> {
    const stat = await folder.look(name);
    if (!stat) return null;
    if (!isFolder) return stat.isFile() ? this.describe(key, stat) : null;
    await using inner = await folder.child(name);
    return inner && (await this.isObject(inner)) ? this.describe(key, await inner.stat()) : null;
  }

  /** Writers of one key follow one another. */
  async #inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#turns.get(key) ?? Promise.resolve()).then(work, work);
    this.#turns.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(key) === turn) this.#turns.delete(key);
    }
  }
}

export async function hasNoEntry(folder: Folder): Promise<boolean> {
  const dir = await opendir(folder.at("."));
  try {
    return (await dir.read()) === null;
  } finally {
    await dir.close();
  }
}

/** Leaves a folder with entries. */
async function isRemovedEmpty(folder: Folder, name: string): Promise<boolean> {
  try {
    await rmdir(folder.at(name));
    return true;
  } catch (error) {
    if (!["ENOTEMPTY", "EEXIST", "ENOENT", "ENOTDIR", "EBUSY"].includes(codeOf(error))) throw error;
    return false;
  }
}

const BLOCK_BYTES = 512;

/** What the quota gets back when this name goes: for a file with holes, which a workload may make, the space it takes. */
const freedBytes = (stat: BigIntStats): number =>
  stat.isFile() && stat.nlink === 1n ? Math.min(Number(stat.size), Number(stat.blocks) * BLOCK_BYTES) : 0;

/** A file without a record has an ETag in the form of an object in parts: clients take no other for an MD5. */
const etagOfFile = ({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  `${createHash("md5").update([ino, size, mtimeNs, ctimeNs].join("/")).digest("hex")}-1`;

const inTheWay = (key: string, what: string): S3Error =>
  new S3Error("InvalidRequest", `The key cannot be written: the drive has ${what} where '${key}' needs another entry.`);

const exists = (): S3Error =>
  new S3Error("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", {
    Condition: "If-None-Match",
  });
