/**
 * Files by the hash of their content, in a bucket that the servers of one database share. The client holds a body in
 * memory, so a file is chunks, and an object that names them: `DIGEST/WRITE/0`, …, and `DIGEST/whole`. The file is there
 * when the last object is. Each write has chunks of its own, so removing an old copy never takes a chunk of a newer one.
 */
import { z } from "zod";
import { randomWord } from "../../lib/ids.ts";
import { inChunks } from "../../lib/in-chunks.ts";
import type { S3Client } from "./s3-client.ts";

export interface BucketBlobs {
  /** `content` gives the bytes from their beginning each time it is called. */
  write(digest: string, content: () => AsyncIterable<Buffer>): Promise<void>;
  /** Null when there is no such file. Ends early when the file is removed meanwhile: the reader checks the hash. */
  read(digest: string): Promise<AsyncIterable<Buffer> | null>;
  /** Unfinished files too. */
  list(): Promise<{ digest: string; writtenMs: number }[]>;
  /** Does nothing when the file was written again after `writtenMs`. */
  remove(digest: string, writtenMs: number): Promise<void>;
}

/** Bytes of a chunk: few requests for a large file, and little memory for each writer. */
export const CHUNK_BYTES = 8 * 1024 * 1024;

/** More than any file has: 800 GB. */
const CHUNKS_MAX = 100_000;

const WHOLE = "whole";
const KEY = /^([0-9a-f]{64})\/(?:whole|([a-z0-9]+)\/\d+)$/;

/** The object that makes a file whole. */
const whole = z.object({ write: z.string().regex(/^[a-z0-9]+$/), chunks: z.int().min(0).max(CHUNKS_MAX) });
type Whole = z.infer<typeof whole>;

/** `prefix`: empty, or with a slash at its end. */
export function openBucketBlobs(
  client: Pick<S3Client, "put" | "get" | "entries" | "remove">,
  prefix: string,
): BucketBlobs {
  const at = (digest: string, rest: string): string => `${prefix}${digest}/${rest}`;

  /** An object that cannot be read counts as absent, so that writing the file again mends it. */
  async function wholeOf(digest: string): Promise<Whole | null> {
    const found = await client.get(at(digest, WHOLE));
    try {
      return found && whole.parse(JSON.parse(found.toString("utf8")));
    } catch {
      return null;
    }
  }

  const putWhole = (digest: string, written: Whole): Promise<boolean> =>
    client.put(at(digest, WHOLE), Buffer.from(JSON.stringify(written)));

  async function* entriesOf(under: string): AsyncGenerator<Entry> {
    for await (const { key, modifiedMs } of client.entries(prefix + under)) {
      const [rest, digest, write] = KEY.exec(key.slice(prefix.length)) ?? [];
      if (rest !== undefined && digest !== undefined) yield { digest, write: write ?? null, rest, modifiedMs };
    }
  }

  return {
    async write(digest, content) {
      const there = await wholeOf(digest);
      // Writing it again makes it younger, so that no sweep takes it for an old file.
      if (there) return void (await putWhole(digest, there));
      const write = randomWord(16);
      let chunks = 0;
      for await (const bytes of inChunks(content(), CHUNK_BYTES)) {
        await client.put(at(digest, `${write}/${chunks}`), bytes);
        chunks += 1;
      }
      await putWhole(digest, { write, chunks });
    },

    async read(digest) {
      const there = await wholeOf(digest);
      if (!there) return null;
      return (async function* () {
        for (let chunk = 0; chunk < there.chunks; chunk += 1) {
          const bytes = await client.get(at(digest, `${there.write}/${chunk}`));
          if (!bytes) return;
          yield bytes;
        }
      })();
    },

    async list() {
      const found = new Map<string, number>();
      for await (const { digest, modifiedMs } of entriesOf(""))
        found.set(digest, Math.max(found.get(digest) ?? 0, modifiedMs));
      return [...found].map(([digest, writtenMs]) => ({ digest, writtenMs }));
    },

    async remove(digest, writtenMs) {
      const entries: Entry[] = [];
      for await (const entry of entriesOf(`${digest}/`)) entries.push(entry);
      // An entry without a readable time is NaN, and may be new.
      if (!entries.every(({ modifiedMs }) => modifiedMs <= writtenMs)) return;
      // The whole file goes first: what is left of it then is no file.
      entries.sort((one, other) => Number(one.write !== null) - Number(other.write !== null));
      for (const { rest } of entries) await client.remove(prefix + rest);
    },
  };
}

interface Entry {
  digest: string;
  /** Null for the object that makes the file whole. */
  write: string | null;
  /** The key behind the prefix. */
  rest: string;
  modifiedMs: number;
}
