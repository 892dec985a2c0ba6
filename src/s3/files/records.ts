/**
 * What S3 knows of an object beside its bytes: ETag, headers, metadata, tags, checksum. A record is a file beside the
 * drive, named by the inode of the object's file, so that the record exists before the file gets its name and moves
 * with the file. A record counts only while the file is as it was written: a workload that changes or replaces the file
 * thereby ends the record.
 */
import type { BigIntStats } from "node:fs";
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { randomWord } from "../../lib/ids.ts";
import type { Checksum } from "../checksums/checksums.ts";
import { Folder, orNull } from "./folder.ts";

export interface ObjectRecord {
  /** Without quotation marks. */
  etag: string;
  /** Standard headers that come back with the object, such as content-type. */
  headers: Record<string, string>;
  /** User metadata without the x-amz-meta- prefix. */
  metadata: Record<string, string>;
  tags: Record<string, string>;
  checksum: Checksum | null;
  /** A folder that was made on the way to an object and is none itself. */
  isImplied?: true;
  /** Number of parts of an object that was sent in parts. */
  parts?: number;
}

interface Stored extends ObjectRecord {
  /** Identity of the file that the record is about. */
  file: string;
}

export class Records {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
  }

  async find(stat: BigIntStats): Promise<ObjectRecord | null> {
    const text = await orNull(readFile(this.#path(stat), "utf8"));
    if (text === null || text === "") return null;
    const { file, ...record } = JSON.parse(text) as Stored;
    return file === identityOf(stat) ? record : null;
  }

  /** The record is on the disk afterwards. One that only keeps an empty folder out of lists need not be. */
  async write(stat: BigIntStats, record: ObjectRecord): Promise<void> {
    const isDurable = !record.isImplied;
    const path = this.#path(stat);
    const draft = `${path}.${randomWord(8)}`;
    const handle = await open(draft, "wx", 0o600);
    try {
      await handle.writeFile(JSON.stringify({ ...record, file: identityOf(stat) } satisfies Stored));
      if (isDurable) await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, path);
    if (!isDurable) return;
    await using folder = await Folder.open(this.#dir);
    await folder.sync();
  }

  async remove(stat: BigIntStats): Promise<void> {
    await rm(this.#path(stat), { force: true });
  }

  #path(stat: BigIntStats): string {
    return join(this.#dir, String(stat.ino));
  }
}

/** A folder changes with each entry, so only its creation tells it from a later folder with the same inode. */
const identityOf = (stat: BigIntStats): string =>
  stat.isDirectory() ? `folder/${stat.birthtimeNs}` : `${stat.size}/${stat.mtimeNs}`;
