/**
 * Files that every server of one database needs, in chunks. A file is named by the hash of its content, so writing it
 * twice changes nothing, and it is there only when its last chunk is.
 */
import { inChunks } from "../lib/in-chunks.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { Database } from "./database/database.ts";

/** Bytes of a chunk: one row is read and written at a time. */
const CHUNK_BYTES = 512 * 1024;
/** Number of chunks of a file that is being written. Its row lets a sweep find what a server that was killed left. */
const UNFINISHED = -1;

export type Blobs = ReturnType<typeof createBlobs>;

export function createBlobs({ database, clock }: { database: Database; clock: Clock }) {
  const begin = (digest: string): Promise<void> =>
    database.write(async ({ queries }) => {
      await queries
        .insertInto("blobs")
        .values({ digest, chunks: UNFINISHED, written_at: clock.now() })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    });

  const writeChunk = (digest: string, at: number, bytes: Buffer): Promise<void> =>
    database.write(async ({ queries }) => {
      const row = { digest, at, base64: bytes.toString("base64") };
      await queries
        .insertInto("blob_chunks")
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    });

  /** False when a sweep removed the chunks of an earlier copy in this moment. */
  const complete = (digest: string, chunks: number): Promise<boolean> =>
    database.write(async ({ queries }) => {
      const written_at = clock.now();
      await queries
        .insertInto("blobs")
        .values({ digest, chunks, written_at })
        .onConflict((conflict) => conflict.column("digest").doUpdateSet({ chunks, written_at }))
        .execute();
      const { n } = await queries
        .selectFrom("blob_chunks")
        .select(({ fn }) => fn.countAll<number>().as("n"))
        .where("digest", "=", digest)
        .executeTakeFirstOrThrow();
      if (Number(n) >= chunks) return true;
      await queries.deleteFrom("blobs").where("digest", "=", digest).execute();
      return false;
    });

  return {
    /** `content` gives the bytes from their beginning each time it is called. */
    async write(digest: string, content: () => AsyncIterable<Buffer>): Promise<void> {
      for (;;) {
        let chunks = 0;
        await begin(digest);
        for await (const bytes of inChunks(content(), CHUNK_BYTES)) {
          await writeChunk(digest, chunks, bytes);
          chunks += 1;
        }
        if (await complete(digest, chunks)) return;
      }
    },

    /** Null when there is no such file. Ends early when the file is removed meanwhile: the reader checks the hash. */
    async read(digest: string): Promise<AsyncIterable<Buffer> | null> {
      const { read: queries } = database;
      const found = await queries
        .selectFrom("blobs")
        .select("chunks")
        .where("digest", "=", digest)
        .where("chunks", "<>", UNFINISHED)
        .executeTakeFirst();
      if (!found) return null;
      return (async function* () {
        for (let at = 0; at < found.chunks; at += 1) {
          const row = await queries
            .selectFrom("blob_chunks")
            .select("base64")
            .where("digest", "=", digest)
            .where("at", "=", at)
            .executeTakeFirst();
          if (!row) return;
          yield Buffer.from(row.base64, "base64");
        }
      })();
    },

    /** Unfinished files too. */
    async list(): Promise<{ digest: string; writtenMs: number }[]> {
      const rows = await database.read.selectFrom("blobs").select(["digest", "written_at"]).execute();
      return rows.map(({ digest, written_at }) => ({ digest, writtenMs: written_at }));
    },

    /** Does nothing when the file was written again after `writtenMs`. */
    remove: (digest: string, writtenMs: number): Promise<void> =>
      database.write(async ({ queries }) => {
        const { numDeletedRows } = await queries
          .deleteFrom("blobs")
          .where("digest", "=", digest)
          .where("written_at", "=", writtenMs)
          .executeTakeFirst();
        if (numDeletedRows > 0n) await queries.deleteFrom("blob_chunks").where("digest", "=", digest).execute();
      }),
  };
}
