/**
 * Which caches of builds (`RUN --mount=type=cache`) a workspace has on this machine, the least recently used first. The
 * caches of a workspace have a bound together: builds with ever new ids would fill the disk otherwise.
 */
import { createHash } from "node:crypto";
import type { BlobStore } from "../blobs/blob-store.ts";

type Notes = Pick<BlobStore, "readNote" | "writeNote">;

/** Each cache is a folder that is measured when a build opens a cache. */
export const CACHES_MAX = 100;

export interface CacheBook {
  /** Notes that a build of the owner uses the cache; returns all caches of the owner, this one last. */
  use(owner: string, drive: string): Promise<string[]>;
  forget(owner: string, drive: string): Promise<void>;
}

/** Builds of one owner run one after the other on a machine, so nobody changes a book at the same time. */
export function createCacheBook(notes: Notes): CacheBook {
  const read = async (owner: string): Promise<string[]> =>
    ((await notes.readNote(keyOf("caches", owner))) as { caches?: string[] } | null)?.caches ?? [];
  const write = (owner: string, caches: string[]): Promise<void> => notes.writeNote(keyOf("caches", owner), { caches });
  return {
    async use(owner, drive) {
      // The sweep removes a cache by its own note, once no build has used the cache for long.
      await notes.writeNote(keyOf(drive), { drive });
      const caches = [...(await read(owner)).filter((one) => one !== drive), drive];
      await write(owner, caches);
      return caches;
    },
    async forget(owner, drive) {
      const caches = await read(owner);
      await write(
        owner,
        caches.filter((one) => one !== drive),
      );
    },
  };
}

const keyOf = (...words: string[]): string => createHash("sha256").update(words.join(" ")).digest("hex");
