/**
 * Blobs on their way from a client, in one part or several. The digest is computed as the bytes come; a part that breaks
 * off leaves what was there before it. Unfinished uploads end with the server and after an hour without a part.
 */
import { createHash, type Hash } from "node:crypto";
import { truncate } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { registryError } from "../../contract/registry-error.ts";
import { randomWord } from "../../lib/ids.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { type Clock, HOUR_MS } from "../../lib/time/clock.ts";
import type { BlobStore } from "../blobs/blob-store.ts";

export interface BlobUploadsOptions {
  blobs: BlobStore;
  clock: Clock;
  /** Largest blob. */
  bytesMax: number;
}

/** Whose upload it is. */
interface Owner {
  owner: string;
  repository: string;
}

interface Upload extends Owner {
  path: string;
  bytes: number;
  hash: Hash;
  usedAt: number;
  isBusy: boolean;
}

export interface Part {
  content: Readable;
  /** The byte that the part begins at, where the client says so. */
  from?: number | undefined;
  /** Its bytes, where the client says so. */
  length?: number | undefined;
}

/** Uploads of one workspace at a time; clients send a handful of layers side by side. */
const OPEN_MAX = 100;
const IDLE_MAX_MS = HOUR_MS;

export class BlobUploads {
  readonly #options: BlobUploadsOptions;
  readonly #open = new Map<string, Upload>();

  constructor(options: BlobUploadsOptions) {
    this.#options = options;
  }

  async begin({ owner, repository }: Owner): Promise<string> {
    const { blobs, clock } = this.#options;
    await this.sweep(clock.now());
    if ([...this.#open.values()].filter((each) => each.owner === owner).length >= OPEN_MAX)
      throw registryError(
        "too_many_requests",
        "TOOMANYREQUESTS",
        `${OPEN_MAX} uploads of this workspace are open already. Finish or cancel some of them.`,
        { headers: { "retry-after": "10" } },
      );
    const id = randomWord(32);
    const upload = { owner, repository, path: "", bytes: 0, hash: createHash("sha256"), usedAt: clock.now() };
    this.#open.set(id, { ...upload, isBusy: true });
    try {
      const path = join(await blobs.makeWorkFolder(), "blob");
      await blobs.append(path, Readable.from([]), 0, createHash("sha256"));
      this.#open.set(id, { ...upload, path, isBusy: false });
    } catch (error) {
      this.#open.delete(id);
      throw error;
    }
    return id;
  }

  /** Bytes that have arrived. */
  bytesOf(id: string, owner: Owner): number {
    return this.#find(id, owner).bytes;
  }

  /** Adds a part; returns the bytes that have arrived. */
  part(id: string, owner: Owner, part: Part): Promise<number> {
    return this.#alone(id, owner, (upload) => this.#append(upload, part));
  }

  /** Adds the last part and keeps the blob; returns its size. */
  finish(id: string, owner: Owner, digest: string, part: Part): Promise<number> {
    return this.#alone(id, owner, async (upload) => {
      await this.#append(upload, part);
      const actual = `sha256:${upload.hash.copy().digest("hex")}`;
      if (actual === digest) await this.#options.blobs.adopt(upload.path, actual.slice("sha256:".length));
      this.#open.delete(id);
      await removeTree(dirname(upload.path));
      if (actual !== digest)
        throw registryError("bad_request", "DIGEST_INVALID", `The blob has the digest ${actual}, not ${digest}.`);
      return upload.bytes;
    });
  }

  async cancel(id: string, owner: Owner): Promise<void> {
    await this.#alone(id, owner, async (upload) => {
      this.#open.delete(id);
      await removeTree(dirname(upload.path));
    });
  }

  async sweep(nowMs: number): Promise<void> {
    for (const [id, upload] of this.#open) {
      if (upload.isBusy || upload.usedAt + IDLE_MAX_MS > nowMs) continue;
      this.#open.delete(id);
      await removeTree(dirname(upload.path));
    }
  }

  #find(id: string, { owner, repository }: Owner): Upload {
    const upload = this.#open.get(id);
    if (upload?.owner === owner && upload.repository === repository) return upload;
    throw registryError("not_found", "BLOB_UPLOAD_UNKNOWN", "There is no such upload. Begin a new one.");
  }

  async #alone<T>(id: string, owner: Owner, work: (upload: Upload) => Promise<T>): Promise<T> {
    const upload = this.#find(id, owner);
    if (upload.isBusy)
      throw registryError("conflict", "BLOB_UPLOAD_INVALID", "Another part of this upload is on its way.");
    upload.isBusy = true;
    try {
      return await work(upload);
    } finally {
      upload.isBusy = false;
      upload.usedAt = this.#options.clock.now();
    }
  }

  async #append(upload: Upload, { content, from, length = 0 }: Part): Promise<number> {
    const { blobs, bytesMax } = this.#options;
    if (from !== undefined && from !== upload.bytes)
      throw registryError(
        "range_not_satisfiable",
        "RANGE_INVALID",
        `The next byte of this upload is ${upload.bytes}.`,
        {
          headers: { range: `0-${Math.max(0, upload.bytes - 1)}` },
        },
      );
    // Told before the body is read, so that the client gets the answer.
    if (upload.bytes + length > bytesMax)
      throw registryError("payload_too_large", "SIZE_INVALID", `A blob may have ${bytesMax} bytes.`);
    const hash = upload.hash.copy();
    try {
      upload.bytes += await blobs.append(upload.path, content, bytesMax - upload.bytes, hash);
    } catch (error) {
      await truncate(upload.path, upload.bytes);
      throw error;
    }
    upload.hash = hash;
    return upload.bytes;
  }
}
