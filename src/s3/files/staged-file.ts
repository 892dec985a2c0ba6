/** Bytes of an object that nobody sees yet. The file gets its name in the drive once it is whole and on the disk. */
import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { randomWord } from "../../lib/ids.ts";
import { type ChecksumName, createChecksum } from "../checksums/checksums.ts";
import { requireQuota, type UseMeter } from "./use-meter.ts";

export interface Written {
  bytes: number;
  md5: string;
  /** Base64, by name. */
  checksums: ReadonlyMap<ChecksumName, string>;
}

/** Throws while the disk has no room for more. */
export type RequireRoom = () => void;

export interface StagingDeps {
  requireRoom: RequireRoom;
  meter: UseMeter;
}

/** The room on the disk is looked at again after so many bytes: one object may have 5 GB. */
const LOOK_EVERY_BYTES = 4 * 1024 * 1024;

/** Bytes that are written at once: a write for every chunk of the network costs more than its bytes. */
const BATCH_BYTES = 1024 * 1024;

export class StagedFile implements AsyncDisposable {
  readonly path: string;
  readonly #handle: FileHandle;
  readonly #requireRoom: RequireRoom;
  readonly #meter: UseMeter;
  #isKept = false;
  /** Bytes that the meter counts for this file. */
  #countedBytes = 0;

  private constructor(path: string, handle: FileHandle, { requireRoom, meter }: StagingDeps) {
    this.path = path;
    this.#handle = handle;
    this.#requireRoom = requireRoom;
    this.#meter = meter;
  }

  /** `bytes`: what will be written; counted now, and given back unless the file is stored. */
  static async create(dir: string, bytes: number, deps: StagingDeps): Promise<StagedFile> {
    const path = join(dir, randomWord(24));
    requireQuota(deps.meter, bytes, 0);
    try {
      const staged = new StagedFile(path, await open(path, "wx", 0o644), deps);
      staged.#countedBytes = bytes;
      return staged;
    } catch (error) {
      deps.meter.add(-bytes, 0);
      throw error;
    }
  }

  /** Writes all bytes of a source. One batch is written while the next one comes in; no more is in memory. */
  async write(source: AsyncIterable<Buffer>, names: readonly ChecksumName[]): Promise<Written> {
    const md5 = createHash("md5");
    const sums = names.map((name) => ({ name, sum: createChecksum(name) }));
    let bytes = 0;
    let nextLook = LOOK_EVERY_BYTES;
    let batch: Buffer[] = [];
    let batchBytes = 0;
    let writing: Promise<void> = Promise.resolve();
    const flush = async (): Promise<void> => {
      await writing;
      writing = this.#append(batch);
      writing.catch(() => {}); // the next flush throws it
      [batch, batchBytes] = [[], 0];
    };
    for await (const chunk of source) {
      bytes += chunk.length;
      if (bytes >= nextLook) {
        this.#requireRoom();
        nextLook = bytes + LOOK_EVERY_BYTES;
      }
      md5.update(chunk);
      for (const { sum } of sums) sum.update(chunk);
      batch.push(chunk);
      batchBytes += chunk.length;
      if (batchBytes >= BATCH_BYTES) await flush();
    }
    await flush();
    await writing;
    const checksums = new Map(sums.map(({ name, sum }) => [name, sum.digest().toString("base64")]));
    return { bytes, md5: md5.digest("hex"), checksums };
  }

  async #append(batch: readonly Buffer[]): Promise<void> {
    let rest = batch.filter(({ length }) => length > 0);
    while (rest.length > 0) {
      let { bytesWritten: left } = await this.#handle.writev(rest);
      // The system may write less than it was given.
      rest = rest.flatMap((chunk) => {
        const done = Math.min(left, chunk.length);
        left -= done;
        return done === chunk.length ? [] : [chunk.subarray(done)];
      });
    }
  }

  /**
   * Puts the file on the disk. The time of change gets digits that no write of the kernel has, so that a later change
   * within the same tick is seen.
   */
  async settle(as: { mode: number; owner: { uid: bigint; gid: bigint } }, nowMs: number): Promise<BigIntStats> {
    if (process.getuid?.() === 0) await this.#handle.chown(Number(as.owner.uid), Number(as.owner.gid));
    await this.#handle.chmod(as.mode);
    const time = nowMs / 1000 + Math.random() / 1000;
    await this.#handle.utimes(time, time);
    await this.#handle.sync();
    return this.#handle.stat({ bigint: true });
  }

  sync(): Promise<void> {
    return this.#handle.sync();
  }

  /** The bytes are part of the drive from now on: `bytes` more than before. */
  stored(bytes: number): void {
    this.#meter.add(bytes - this.#countedBytes, 0);
    this.#countedBytes = 0;
  }

  /** The file has a name elsewhere now. */
  kept(): void {
    this.#isKept = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
    if (!this.#isKept) await rm(this.path, { force: true });
    this.#meter.add(-this.#countedBytes, 0);
  }
}
