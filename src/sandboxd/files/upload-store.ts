/**
 * Uploads in parts. The parts lie in a hidden folder beside the target, on the same file system, so that completing
 * needs no space for a second copy: the first part becomes the file, and each following part is appended and removed. A
 * part's file name holds its number, size and digest, so uploaded parts survive a restart of the daemon.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { ApiError } from "../http/api-error.ts";
import { randomWord } from "../random-word.ts";
import { type BytePath, baseName, folderOf, fromText, joinPath, toBytes, toText } from "./byte-path.ts";
import { DEFAULT_FOLDER_MODE, makeFolder, notRegular, throughLinks, type WriteOptions } from "./file-io.ts";

const UPLOADS_MAX = 1000;
/** An upload neither completed nor aborted for this long is removed. */
const UPLOAD_AGE_MAX_MS = 24 * 3600 * 1000;
const PART_NUMBER_MAX = 10_000;
const COPY_BYTES = 1024 * 1024;

export interface Upload {
  uploadId: string;
  path: BytePath;
  permissions: number;
  initiatedAtMs: number;
  folder: BytePath;
  /** The parts of the file, fixed when assembling begins. An interrupted assembly goes on with the same parts. */
  chosen?: ChosenPart[];
  /** The file is in its place. Kept for a day, for a client that lost the response and asks again. */
  isComplete?: boolean;
}

type ChosenPart = Pick<Part, "partNumber" | "etag" | "size">;

export interface Part {
  partNumber: number;
  etag: string;
  size: number;
  uploadedAt: string;
  file: BytePath;
}

/** Name of the first part while the other parts are appended to it. */
const ASSEMBLED = "assembled";

/** Keeps one small file per upload in a folder of the daemon's state. */
export class UploadStore {
  readonly #folder: string;
  readonly #completing = new Map<string, Promise<void>>();

  constructor(stateDir: string) {
    this.#folder = join(stateDir, "uploads");
    mkdirSync(this.#folder, { recursive: true });
  }

  async initiate(path: BytePath, permissions: number, { user }: WriteOptions): Promise<Upload> {
    await this.#removeStale();
    if (this.list().length >= UPLOADS_MAX) throw new ApiError(400, `${UPLOADS_MAX} uploads are open already.`);
    const existing = statSync(toBytes(path), { throwIfNoEntry: false });
    if (existing && !existing.isFile()) throw notRegular(path, existing);
    const uploadId = randomWord(24);
    const target = existing ? throughLinks(path) : path;
    const folder = joinPath(folderOf(target), fromText(`.upload-${uploadId}`));
    const upload: Upload = { uploadId, path: target, permissions, initiatedAtMs: Date.now(), folder };
    makeFolder(folderOf(target), DEFAULT_FOLDER_MODE, user);
    mkdirSync(toBytes(folder), { mode: 0o700 });
    this.#write(upload);
    return upload;
  }

  get(uploadId: string): Upload {
    // The id becomes a file name, so only letters and digits are accepted.
    const known = /^[a-z0-9]{1,64}$/.test(uploadId) ? this.#read(uploadId) : null;
    if (!known) throw new ApiError(404, `There is no upload "${uploadId}".`);
    return known;
  }

  /** Uploads that are not complete yet. */
  list(): Upload[] {
    return this.#all().filter(({ isComplete }) => !isComplete);
  }

  #all(): Upload[] {
    return readdirSync(this.#folder).flatMap((id) => this.#read(id) ?? []);
  }

  parts(upload: Upload): Part[] {
    if (upload.isComplete) return [];
    const found = readdirSync(toBytes(upload.folder), { encoding: "utf8" }).flatMap(
      (name) => partFrom(upload, name) ?? [],
    );
    return found.sort((a, b) => a.partNumber - b.partNumber);
  }

  /** A part that is sent again replaces the earlier one. */
  beginPart(upload: Upload, partNumber: number): IncomingPart {
    if (partNumber < 1 || partNumber > PART_NUMBER_MAX) {
      throw new ApiError(400, `"partNumber" must be between 1 and ${PART_NUMBER_MAX}.`);
    }
    if (upload.chosen) throw new ApiError(409, `The upload "${upload.uploadId}" is being completed and takes no part.`);
    return new IncomingPart(upload, partNumber, () => this.parts(upload));
  }

  /**
   * Assembles the file. A client that lost its connection may call again: it waits for the same run and gets its
   * result.
   */
  async complete(upload: Upload, wanted: { partNumber: number; etag: string }[], options: WriteOptions): Promise<void> {
    if (wanted.length === 0) throw new ApiError(400, '"parts" must name at least one part.');
    const have: ChosenPart[] = upload.chosen ?? this.parts(upload);
    const chosen = [...wanted]
      .sort((a, b) => a.partNumber - b.partNumber)
      .map(({ partNumber, etag }) => {
        const part = have.find((one) => one.partNumber === partNumber);
        if (!part) throw new ApiError(400, `Part ${partNumber} was not uploaded.`);
        if (part.etag !== etag.replace(/^"|"$/g, ""))
          throw new ApiError(500, `The etag of part ${partNumber} does not match.`);
        return { partNumber, etag: part.etag, size: part.size };
      });
    if (upload.chosen && chosen.length !== upload.chosen.length)
      throw new ApiError(400, `The upload "${upload.uploadId}" is being completed with other parts.`);
    if (upload.isComplete) return rm(toBytes(upload.folder), { recursive: true, force: true });
    const running = this.#completing.get(upload.uploadId) ?? this.#assemble({ ...upload, chosen }, options);
    this.#completing.set(upload.uploadId, running);
    try {
      await running;
    } finally {
      this.#completing.delete(upload.uploadId);
    }
  }

  /** Resumes an interrupted assembly: the length of the file tells which parts it already holds. */
  async #assemble(upload: Upload & { chosen: ChosenPart[] }, { user }: WriteOptions): Promise<void> {
    this.#write(upload);
    const whole = joinPath(upload.folder, fromText(ASSEMBLED));
    const fileOf = (part: ChosenPart): BytePath => joinPath(upload.folder, fromText(nameOf(part)));
    const [first, ...rest] = upload.chosen as [ChosenPart, ...ChosenPart[]];
    if (exists(fileOf(first))) renameSync(toBytes(fileOf(first)), toBytes(whole));
    // When ASSEMBLED is missing, an earlier run already moved the file into place but did not record that.
    if (exists(whole)) {
      let size = first.size;
      for (const part of rest) {
        if (exists(fileOf(part))) await append(whole, fileOf(part), size);
        size += part.size;
      }
      const fd = openSync(toBytes(whole), constants.O_WRONLY);
      fchmodSync(fd, upload.permissions);
      if (user) fchownSync(fd, user.uid, user.gid);
      closeSync(fd);
      renameSync(toBytes(whole), toBytes(upload.path));
    }
    this.#write({ ...upload, isComplete: true });
    await rm(toBytes(upload.folder), { recursive: true, force: true });
  }

  async abort(upload: Upload): Promise<void> {
    await rm(toBytes(upload.folder), { recursive: true, force: true });
    rmSync(join(this.#folder, upload.uploadId), { force: true });
  }

  async #removeStale(): Promise<void> {
    const before = Date.now() - UPLOAD_AGE_MAX_MS;
    for (const upload of this.#all()) if (upload.initiatedAtMs < before) await this.abort(upload);
  }

  /** Written atomically: a killed daemon leaves the old or the new record. */
  #write(upload: Upload): void {
    const file = join(this.#folder, upload.uploadId);
    writeFileSync(`${file}.new`, JSON.stringify(upload));
    renameSync(`${file}.new`, file);
  }

  #read(uploadId: string): Upload | null {
    try {
      return JSON.parse(readFileSync(join(this.#folder, uploadId), "utf8")) as Upload;
    } catch {
      return null; // no such upload, or it ended meanwhile
    }
  }
}

/** One part that is being received. */
export class IncomingPart {
  readonly #upload: Upload;
  readonly #partNumber: number;
  readonly #others: () => Part[];
  readonly #aside: BytePath;
  readonly #digest = createHash("md5");
  #handle: Awaited<ReturnType<typeof open>> | null = null;
  #size = 0;

  constructor(upload: Upload, partNumber: number, others: () => Part[]) {
    this.#upload = upload;
    this.#partNumber = partNumber;
    this.#others = others;
    this.#aside = joinPath(upload.folder, fromText(`incoming-${randomWord(8)}`));
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.#handle ??= await open(toBytes(this.#aside), "wx", 0o600);
    this.#digest.update(chunk);
    for (let at = 0; at < chunk.byteLength; ) {
      at += (await this.#handle.write(chunk, at, chunk.byteLength - at)).bytesWritten;
    }
    this.#size += chunk.byteLength;
  }

  async commit(): Promise<Part> {
    await this.write(new Uint8Array(0));
    await this.#handle?.close();
    this.#handle = null;
    const etag = this.#digest.digest("hex");
    const name = nameOf({ partNumber: this.#partNumber, size: this.#size, etag });
    for (const part of this.#others()) {
      if (part.partNumber === this.#partNumber && toText(baseName(part.file)) !== name) rmSync(toBytes(part.file));
    }
    renameSync(toBytes(this.#aside), toBytes(joinPath(this.#upload.folder, fromText(name))));
    const part = partFrom(this.#upload, name);
    if (!part) throw new Error(`part ${name} vanished`);
    return part;
  }

  /** Removes the received bytes. Does nothing after commit. */
  async discard(): Promise<void> {
    await this.#handle?.close();
    this.#handle = null;
    rmSync(toBytes(this.#aside), { force: true });
  }
}

function partFrom(upload: Upload, name: string): Part | undefined {
  const match = /^(\d+)\.(\d+)\.([0-9a-f]{32})$/.exec(name);
  if (!match?.[3]) return undefined;
  const file = joinPath(upload.folder, fromText(name));
  const stats = statSync(toBytes(file), { throwIfNoEntry: false });
  if (!stats) return undefined;
  return {
    partNumber: Number(match[1]),
    size: Number(match[2]),
    etag: match[3],
    uploadedAt: stats.mtime.toISOString(),
    file,
  };
}

const nameOf = ({ partNumber, size, etag }: ChosenPart): string => `${partNumber}.${size}.${etag}`;
const exists = (path: BytePath): boolean => statSync(toBytes(path), { throwIfNoEntry: false }) !== undefined;

/** Appends after the first `size` bytes and drops the bytes that an interrupted attempt left there. */
async function append(target: BytePath, source: BytePath, size: number): Promise<void> {
  const to = await open(toBytes(target), "a");
  const from = await open(toBytes(source), "r");
  try {
    await to.truncate(size);
    const buffer = Buffer.allocUnsafe(COPY_BYTES);
    for (;;) {
      const { bytesRead } = await from.read(buffer, 0, COPY_BYTES);
      if (bytesRead === 0) break;
      for (let at = 0; at < bytesRead; ) at += (await to.write(buffer, at, bytesRead - at)).bytesWritten;
    }
  } finally {
    await from.close();
    await to.close();
  }
  rmSync(toBytes(source));
}
