/**
 * Objects that are sent in parts. An upload is a folder beside the drive: `upload.json`, and for each part a file with
 * the bytes and a note that names it. The note is written last, so a part is there as a whole or not at all.
 */
import { mkdir, open, readdir, readFile, rename, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { randomWord } from "../../lib/ids.ts";
import { type Clock, DAY_MS } from "../../lib/time/clock.ts";
import type { Checksum, ChecksumName, ChecksumType } from "../checksums/checksums.ts";
import { S3Error } from "../wire/s3-error.ts";
import { Folder, orNull } from "./folder.ts";
import type { ObjectRecord } from "./records.ts";
import type { StagedFile } from "./staged-file.ts";
import type { UseMeter } from "./use-meter.ts";

export interface Upload {
  id: string;
  key: string;
  startedMs: number;
  /** What the object gets once it is whole. */
  described: Pick<ObjectRecord, "headers" | "metadata" | "tags">;
  checksum: { name: ChecksumName; type: ChecksumType } | null;
}

export interface Part {
  number: number;
  bytes: number;
  /** MD5 in hexadecimal digits. */
  etag: string;
  checksum: Checksum | null;
  modifiedMs: number;
}

interface Note extends Part {
  /** Name of the file with the bytes. */
  file: string;
}

const UPLOAD = "upload.json";
const NOTE = /^(\d{1,5})\.json$/;
const ID_LENGTH = 32;
const CHUNK_BYTES = 256 * 1024;
/** Unfinished uploads of a drive. Their parts are on the disk, and no workload sees them. */
const UPLOADS_MAX = 1000;
/** An upload that was neither completed nor aborted ends after this time, with its parts. */
const UPLOAD_LIFE_MS = 7 * DAY_MS;
/** Files that are read at once: each has a descriptor, and an upload may have 10,000 notes. */
const READ_AT_ONCE = 32;

export class PartUploads {
  readonly #dir: string;
  readonly #clock: Clock;
  readonly #meter: UseMeter;
  /** Uploads that are being begun, and are in no list yet. */
  #beginning = 0;

  constructor(dir: string, { clock, meter }: { clock: Clock; meter: UseMeter }) {
    this.#dir = dir;
    this.#clock = clock;
    this.#meter = meter;
  }

  async begin(upload: Omit<Upload, "id" | "startedMs">): Promise<Upload> {
    this.#beginning += 1;
    try {
      const isFull = async (): Promise<boolean> => (await readdir(this.#dir)).length + this.#beginning > UPLOADS_MAX;
      if (await isFull()) {
        await this.endOld();
        if (await isFull())
          throw new S3Error(
            "InvalidRequest",
            `The drive has ${UPLOADS_MAX} uploads in parts that are neither complete nor aborted. Abort some of them.`,
          );
      }
      return await this.#begin(upload);
    } finally {
      this.#beginning -= 1;
    }
  }

  async #begin(upload: Omit<Upload, "id" | "startedMs">): Promise<Upload> {
    const begun = { ...upload, startedMs: this.#clock.now(), id: randomWord(ID_LENGTH) };
    const dir = join(this.#dir, begun.id);
    await mkdir(dir, { mode: 0o700 });
    await writeNote(dir, UPLOAD, begun);
    await synced(this.#dir);
    return begun;
  }

  /** Refused unless the upload is of this key. */
  async get(id: string, key: string): Promise<Upload> {
    const found = isId(id) ? await orNull(readFile(join(this.#dir, id, UPLOAD), "utf8")) : null;
    const upload = found === null ? null : (JSON.parse(found) as Upload);
    if (upload?.key !== key) throw noSuchUpload(id);
    if (!this.#isOld(upload)) return upload;
    await this.end(upload);
    throw noSuchUpload(id);
  }

  async list(): Promise<Upload[]> {
    return (await this.#all()).filter((upload) => !this.#isOld(upload)).sort(byKey);
  }

  async #all(): Promise<Upload[]> {
    const ids = (await readdir(this.#dir)).filter(isId);
    const texts = await inLots(ids, (id) => orNull(readFile(join(this.#dir, id, UPLOAD), "utf8")));
    return texts.flatMap((text) => (text === null ? [] : [JSON.parse(text) as Upload]));
  }

  #isOld({ startedMs }: Upload): boolean {
    return startedMs + UPLOAD_LIFE_MS <= this.#clock.now();
  }

  /** Removes the uploads that are too old. */
  async endOld(): Promise<void> {
    for (const upload of await this.#all()) if (this.#isOld(upload)) await this.end(upload);
  }

  folderOf({ id }: Upload): string {
    return join(this.#dir, id);
  }

  /** Takes the bytes of a staged file as a part; an earlier part of this number ends. */
  async add({ id }: Upload, staged: StagedFile, part: Part): Promise<void> {
    const dir = join(this.#dir, id);
    await staged.sync();
    const file = staged.path.slice(dir.length + 1);
    const before = await this.#note(id, part.number);
    try {
      await writeNote(dir, `${part.number}.json`, { ...part, file } satisfies Note);
    } catch (error) {
      // The upload was completed or aborted meanwhile.
      throw (error as NodeJS.ErrnoException).code === "ENOENT" ? noSuchUpload(id) : error;
    }
    staged.kept();
    staged.stored(part.bytes);
    if (before && (await isRemoved(join(dir, before.file)))) this.#meter.add(-before.bytes, 0);
  }

  /** By number. */
  async parts({ id }: Upload): Promise<Part[]> {
    return (await this.#notes(id)).map(({ file: _file, ...part }) => part);
  }

  /** The bytes of parts, one after the other. */
  async *bytes({ id }: Upload, numbers: readonly number[]): AsyncGenerator<Buffer> {
    for (const number of numbers) {
      const note = await this.#note(id, number);
      if (!note) throw noSuchUpload(id);
      const handle = await open(join(this.#dir, id, note.file));
      try {
        for (let at = 0; at < note.bytes; ) {
          const size = Math.min(CHUNK_BYTES, note.bytes - at);
          const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(size), 0, size, at);
          if (bytesRead === 0) throw new Error(`part ${number} of an upload is cut off`);
          at += bytesRead;
          yield buffer.subarray(0, bytesRead);
        }
      } finally {
        await handle.close();
      }
    }
  }

  async end({ id }: Upload): Promise<void> {
    const bytes = (await this.#notes(id)).reduce((sum, part) => sum + part.bytes, 0);
    // Without its first file the folder is no upload any more, whatever happens to the rest.
    const isEnded = await isRemoved(join(this.#dir, id, UPLOAD));
    await rm(join(this.#dir, id), { recursive: true, force: true });
    if (isEnded) this.#meter.add(-bytes, 0);
  }

  /** Removes what an earlier server left: ended uploads, files that no note names, and uploads that are too old. */
  async sweep(): Promise<void> {
    await this.endOld();
    for (const id of await readdir(this.#dir)) {
      const names = await readdir(join(this.#dir, id));
      if (!names.includes(UPLOAD)) await rm(join(this.#dir, id), { recursive: true, force: true });
      else {
        const kept = new Set((await this.#notes(id)).map(({ file }) => file));
        for (const name of names)
          if (name !== UPLOAD && !NOTE.test(name) && !kept.has(name))
            await rm(join(this.#dir, id, name), { force: true });
      }
    }
  }

  async #notes(id: string): Promise<Note[]> {
    const names = (await orNull(readdir(join(this.#dir, id)))) ?? [];
    const numbers = names.flatMap((name) => NOTE.exec(name)?.[1] ?? []).map(Number);
    const notes = await inLots(numbers, (number) => this.#note(id, number));
    return notes.filter((note) => note !== null).sort((one, other) => one.number - other.number);
  }

  async #note(id: string, number: number): Promise<Note | null> {
    const text = await orNull(readFile(join(this.#dir, id, `${number}.json`), "utf8"));
    return text === null ? null : (JSON.parse(text) as Note);
  }
}

async function inLots<T, R>(all: readonly T[], work: (one: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (let at = 0; at < all.length; at += READ_AT_ONCE)
    done.push(...(await Promise.all(all.slice(at, at + READ_AT_ONCE).map(work))));
  return done;
}

/** False when somebody else has removed the file: of many at once, one gives its bytes back to the quota. */
const isRemoved = async (file: string): Promise<boolean> =>
  (await orNull(unlink(file).then(() => true as const))) ?? false;

const isId = (id: string): boolean => /^[a-z0-9]+$/.test(id) && id.length === ID_LENGTH;

const byKey = (one: Upload, other: Upload): number =>
  Buffer.compare(Buffer.from(one.key), Buffer.from(other.key)) || one.startedMs - other.startedMs;

async function writeNote(dir: string, name: string, content: object): Promise<void> {
  const draft = join(dir, `${randomWord(12)}.draft`);
  const handle = await open(draft, "wx", 0o600);
  try {
    await handle.writeFile(JSON.stringify(content));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, join(dir, name));
  await synced(dir);
}

async function synced(dir: string): Promise<void> {
  await using folder = await Folder.open(dir);
  await folder.sync();
}

const noSuchUpload = (id: string): S3Error =>
  new S3Error(
    "NoSuchUpload",
    "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.",
    { UploadId: id },
  );
