/**
 * A repository of backups. Everything in it is sealed with the secret key and lies below the fingerprint of that key, so
 * that backups of before and after a rotation share one place.
 *
 *   keys/FINGERPRINT                  plain: this place has backups of that key
 *   FINGERPRINT/chunks/ab/abcd…       pieces of streams, by their content; each is there once
 *   FINGERPRINT/parts/BACKUP/NODE     the files of one node
 *   FINGERPRINT/backups/BACKUP        written last: with it the backup is whole, without it there is none
 */
import { PlatformError } from "../../../contract/errors.ts";
import { fingerprintOf } from "../../../lib/sealed-box.ts";
import { type ChunkBox, chunkBox } from "./chunk-box.ts";
import { CHUNK_BYTES_MAX, chunksOf } from "./chunker.ts";
import { OBJECT_BYTES_MAX, type Place } from "./place.ts";
import { holdLock, type RepositoryLock } from "./repository-lock.ts";

/** A stream as its chunks, in order. */
export interface Stored {
  chunks: string[];
  bytes: number;
}

/** Called as work goes on. */
export interface Progress {
  /** Bytes that were read from this machine, or from the repository. */
  read(bytes: number): void;
  /** Bytes that were not there yet and travelled, sealed. */
  sent(bytes: number): void;
}

/** Chunks that travel at once: enough to hide the time of an answer, and some megabytes of memory. */
const AT_ONCE = 8;
const NAME = /^[0-9a-f]{64}$/;
const WORD = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

export class Repository {
  readonly place: Place;
  readonly fingerprint: string;
  readonly #box: ChunkBox;
  #known: Set<string> | null = null;

  constructor(place: Place, secretKey: Buffer) {
    this.place = place;
    this.fingerprint = fingerprintOf(secretKey);
    this.#box = chunkBox(secretKey);
  }

  /** Nobody else writes here until the lock is released. */
  lock(): Promise<RepositoryLock> {
    return holdLock(this.place, this.#key("lock"));
  }

  /** Marks the place as one with backups of this key. */
  async prepare(): Promise<void> {
    await this.place.putNew(`keys/${this.fingerprint}`, Buffer.from(`${JSON.stringify({ berth: "backups" })}\n`));
  }

  /** Names of chunks that are there. Read once: only the holder of the lock adds and removes. */
  async chunkNames(): Promise<Set<string>> {
    if (this.#known) return this.#known;
    this.#known = new Set();
    for await (const key of this.place.list(this.#key("chunks/"))) this.#known.add(key.slice(key.lastIndexOf("/") + 1));
    return this.#known;
  }

  async write(source: AsyncIterable<Buffer>, progress: Progress): Promise<Stored> {
    const known = await this.chunkNames();
    const stored: Stored = { chunks: [], bytes: 0 };
    const sending = new Set<Promise<void>>();
    const failed = Promise.withResolvers<never>();
    failed.promise.catch(() => {}); // thrown below
    for await (const content of chunksOf(source, this.#box.gear)) {
      const name = this.#box.nameOf(content);
      stored.chunks.push(name);
      stored.bytes += content.length;
      progress.read(content.length);
      if (known.has(name)) continue;
      known.add(name);
      const work = this.#send(name, content, progress)
        .catch((error: unknown) => {
          known.delete(name);
          failed.reject(error);
        })
        .finally(() => sending.delete(work));
      sending.add(work);
      if (sending.size >= AT_ONCE) await Promise.race([...sending, failed.promise]);
    }
    await Promise.race([Promise.all(sending), failed.promise]);
    return stored;
  }

  async #send(name: string, content: Buffer, progress: Progress): Promise<void> {
    const sealed = await this.#box.seal(name, content);
    await this.place.put(this.#chunkKey(name), sealed);
    progress.sent(sealed.length);
  }

  /** The bytes of a stream, each chunk checked. Some chunks are fetched ahead. */
  async *read({ chunks, bytes }: Stored): AsyncGenerator<Buffer> {
    const ahead: Promise<Buffer>[] = [];
    let [next, total] = [0, 0];
    try {
      for (let at = 0; at < chunks.length; at += 1) {
        while (next < chunks.length && ahead.length < AT_ONCE) {
          const fetched = this.chunk(chunks[next++] ?? "");
          fetched.catch(() => {}); // thrown when its turn comes
          ahead.push(fetched);
        }
        const content = await (ahead.shift() as Promise<Buffer>);
        total += content.length;
        yield content;
      }
    } finally {
      await Promise.allSettled(ahead);
    }
    if (total !== bytes) throw damaged("a stream has another length than when it was written");
  }

  /** Content of one chunk. Its name is the proof that it is the content that was stored. */
  async chunk(name: string): Promise<Buffer> {
    if (!NAME.test(name)) throw damaged("it names a chunk that no backup writes");
    const sealed = await this.place.get(this.#chunkKey(name));
    if (sealed === null) throw damaged(`the chunk ${name} is missing`);
    const content = await this.#box.open(name, sealed, CHUNK_BYTES_MAX);
    if (this.#box.nameOf(content) !== name) throw damaged(`the chunk ${name} has other content`);
    return content;
  }

  async removeChunk(name: string): Promise<void> {
    this.#known?.delete(name);
    await this.place.remove(this.#chunkKey(name));
  }

  /** A small JSON document, sealed under its own name. */
  async writeNote(name: string, value: unknown): Promise<void> {
    await this.place.put(this.#key(name), await this.#box.seal(name, Buffer.from(JSON.stringify(value))));
  }

  /** Null when there is none. */
  async readNote(name: string): Promise<unknown> {
    const sealed = await this.place.get(this.#key(name));
    if (sealed === null) return null;
    return JSON.parse((await this.#box.open(name, sealed, OBJECT_BYTES_MAX)).toString("utf8")) as unknown;
  }

  /** Last words of the names of notes below this one. */
  async listNotes(under: string): Promise<string[]> {
    const found: string[] = [];
    for await (const key of this.place.list(this.#key(`${under}/`)))
      found.push(key.slice(this.#key(`${under}/`).length));
    return found.filter((word) => word.split("/").every((part) => WORD.test(part))).sort();
  }

  removeNote(name: string): Promise<void> {
    return this.place.remove(this.#key(name));
  }

  #key(name: string): string {
    return `${this.fingerprint}/${name}`;
  }

  #chunkKey(name: string): string {
    return this.#key(`chunks/${name.slice(0, 2)}/${name}`);
  }
}

/** Fingerprints of the keys that this place has backups of; empty for a place without any. */
export async function keysIn(place: Place): Promise<string[]> {
  const found: string[] = [];
  for await (const key of place.list("keys/")) found.push(key.slice("keys/".length));
  return found;
}

export const damaged = (why: string): PlatformError =>
  new PlatformError("unprocessable", `The backup is damaged: ${why}.`);
