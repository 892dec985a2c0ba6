/**
 * Uploads in parts. The parts lie in a hidden folder beside the target, on the same file system, so that completing
 * needs no second copy's worth of space: the first part becomes the file and each following one is appended and removed.
 * A part's number, size and digest are its file name; what a client has sent therefore survives the daemon.
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
import { ApiError } from "./api-error.ts";
import { type BytePath, baseName, folderOf, fromText, joinPath, toBytes, toText } from "./byte-path.ts";
import { DEFAULT_FOLDER_MODE, makeFolder, notRegular, throughLinks, type WriteOptions } from "./file-io.ts";
import { randomWord } from "./random-word.ts";

const UPLOADS_MAX = 1000;
/** An upload nobody has completed or aborted for so long is litter. */
const UPLOAD_AGE_MAX_MS = 24 * 3600 * 1000;
const PART_NUMBER_MAX = 10_000;
const COPY_BYTES = 1024 * 1024;

export interface Upload {
  uploadId: string;
  path: BytePath;
  permissions: number;
  initiatedAtMs: number;
  folder: BytePath;
}

export interface Part {
  partNumber: number;
  etag: string;
  size: number;
  uploadedAt: string;
  file: BytePath;
}

/** Folder with one small file per upload, in the daemon's state. */
export class UploadStore {
  readonly #folder: string;

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
    writeFileSync(join(this.#folder, uploadId), JSON.stringify(upload));
    return upload;
  }

  get(uploadId: string): Upload {
    // The id names a file of ours: nothing but letters and digits gets that far.
    const known = /^[a-z0-9]{1,64}$/.test(uploadId) ? this.#read(uploadId) : null;
    if (!known) throw new ApiError(404, `There is no upload "${uploadId}".`);
    return known;
  }

  list(): Upload[] {
    return readdirSync(this.#folder).flatMap((id) => this.#read(id) ?? []);
  }

  parts(upload: Upload): Part[] {
    const found = readdirSync(toBytes(upload.folder), { encoding: "utf8" }).flatMap(
      (name) => partFrom(upload, name) ?? [],
    );
    return found.sort((a, b) => a.partNumber - b.partNumber);
  }

  /** Sending a part again replaces it. */
  beginPart(upload: Upload, partNumber: number): IncomingPart {
    if (partNumber < 1 || partNumber > PART_NUMBER_MAX) {
      throw new ApiError(400, `"partNumber" must be between 1 and ${PART_NUMBER_MAX}.`);
    }
    return new IncomingPart(upload, partNumber, () => this.parts(upload));
  }

  async complete(upload: Upload, wanted: { partNumber: number; etag: string }[], options: WriteOptions): Promise<void> {
    const have = new Map(this.parts(upload).map((part) => [part.partNumber, part]));
    const parts = [...wanted]
      .sort((a, b) => a.partNumber - b.partNumber)
      .map(({ partNumber, etag }) => {
        const part = have.get(partNumber);
        if (!part) throw new ApiError(400, `Part ${partNumber} was not uploaded.`);
        if (part.etag !== etag.replace(/^"|"$/g, ""))
          throw new ApiError(500, `The etag of part ${partNumber} does not match.`);
        return part;
      });
    const [first, ...rest] = parts;
    if (!first) throw new ApiError(400, '"parts" must name at least one part.');
    for (const part of rest) await append(first.file, part.file);
    const fd = openSync(toBytes(first.file), constants.O_WRONLY);
    fchmodSync(fd, upload.permissions);
    if (options.user) fchownSync(fd, options.user.uid, options.user.gid);
    closeSync(fd);
    renameSync(toBytes(first.file), toBytes(upload.path));
    await this.abort(upload);
  }

  async abort(upload: Upload): Promise<void> {
    await rm(toBytes(upload.folder), { recursive: true, force: true });
    rmSync(join(this.#folder, upload.uploadId), { force: true });
  }

  async #removeStale(): Promise<void> {
    const before = Date.now() - UPLOAD_AGE_MAX_MS;
    for (const upload of this.list()) if (upload.initiatedAtMs < before) await this.abort(upload);
  }

  #read(uploadId: string): Upload | null {
    try {
      return JSON.parse(readFileSync(join(this.#folder, uploadId), "utf8")) as Upload;
    } catch {
      return null; // no such upload, or one that ended in between
    }
  }
}

/** One part on its way in. */
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
    const name = `${this.#partNumber}.${this.#size}.${etag}`;
    for (const part of this.#others()) {
      if (part.partNumber === this.#partNumber && toText(baseName(part.file)) !== name) rmSync(toBytes(part.file));
    }
    renameSync(toBytes(this.#aside), toBytes(joinPath(this.#upload.folder, fromText(name))));
    const part = partFrom(this.#upload, name);
    if (!part) throw new Error(`part ${name} vanished`);
    return part;
  }

  /** Harmless after commit. */
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

async function append(target: BytePath, source: BytePath): Promise<void> {
  const to = await open(toBytes(target), "a");
  const from = await open(toBytes(source), "r");
  try {
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
