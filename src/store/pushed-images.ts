/**
 * What each repository of the platform's registry has: blobs, whose bytes are files elsewhere, and manifests. A blob is
 * readable through a repository only when the repository has a row for it: knowing a digest gives nobody its content.
 */
import type { Clock } from "../lib/time/clock.ts";
import type { Database, Transaction } from "./database/database.ts";
import type { PushedManifestRow } from "./database/schema.ts";

export interface RepositoryKey {
  owner: string;
  repository: string;
}

export interface PushedManifest {
  digest: string;
  mediaType: string;
  content: string;
  /** Digests of the blobs and manifests that it names. */
  names: readonly string[];
  subject: string | null;
}

/** A manifest without its content. */
export type ManifestEntry = Omit<PushedManifest, "content"> & { createdAt: number };

export type PushedImages = ReturnType<typeof createPushedImages>;

export function createPushedImages({ database, clock }: { database: Database; clock: Clock }) {
  const removeRows = async (
    { queries }: Transaction,
    table: "pushed_blobs" | "pushed_manifests",
    { owner, repository }: RepositoryKey,
    { digests, olderThan }: { digests?: readonly string[]; olderThan?: number | undefined } = {},
  ): Promise<void> => {
    let rows = queries.deleteFrom(table).where("owner", "=", owner).where("repository", "=", repository);
    if (digests !== undefined) rows = rows.where("digest", "in", digests);
    if (olderThan !== undefined) rows = rows.where("created_at", "<", olderThan);
    await rows.execute();
  };

  return {
    /**
     * A blob that the repository has already counts as new: the sweep leaves new ones. False when the owner would have
     * more than these blobs or bytes; a blob in several repositories counts once.
     */
    addBlob: (
      { owner, repository }: RepositoryKey,
      { digest, sizeBytes }: { digest: string; sizeBytes: number },
      { bytesMax, blobsMax }: { bytesMax: number; blobsMax: number },
    ): Promise<boolean> =>
      database.write(async ({ queries }) => {
        const created_at = clock.now();
        const others = queries
          .selectFrom("pushed_blobs")
          .select(["digest", "size_bytes"])
          .distinct()
          .where("owner", "=", owner)
          .where("digest", "!=", digest)
          .as("others");
        const { blobs, bytes } = await queries
          .selectFrom(others)
          .select(({ fn }) => [fn.countAll().as("blobs"), fn.sum("others.size_bytes").as("bytes")])
          .executeTakeFirstOrThrow();
        if (Number(blobs) + 1 > blobsMax || Number(bytes ?? 0) + sizeBytes > bytesMax) return false;
        await queries
          .insertInto("pushed_blobs")
          .values({ owner, repository, digest, size_bytes: sizeBytes, created_at })
          .onConflict((conflict) => conflict.columns(["owner", "repository", "digest"]).doUpdateSet({ created_at }))
          .execute();
        return true;
      }),

    /** The size of a blob; null when the repository does not have it. */
    async blobBytes({ owner, repository }: RepositoryKey, digest: string): Promise<number | null> {
      const row = await database.read
        .selectFrom("pushed_blobs")
        .select("size_bytes")
        .where("owner", "=", owner)
        .where("repository", "=", repository)
        .where("digest", "=", digest)
        .executeTakeFirst();
      return row ? Number(row.size_bytes) : null;
    },

    async listBlobs({ owner, repository }: RepositoryKey): Promise<{ digest: string; createdAt: number }[]> {
      const rows = await database.read
        .selectFrom("pushed_blobs")
        .select(["digest", "created_at"])
        .where("owner", "=", owner)
        .where("repository", "=", repository)
        .execute();
      return rows.map(({ digest, created_at }) => ({ digest, createdAt: Number(created_at) }));
    },

    /**
     * Keeps a manifest, and makes everything that it names count as new, so that a sweep of this moment leaves it.
     * Tells when a sweep was faster, or when the manifests of the owner would have more than `bytesMax` bytes.
     */
    addManifest: (
      { owner, repository }: RepositoryKey,
      { digest, mediaType, content, names, subject }: PushedManifest,
      bytesMax: number,
    ): Promise<"added" | "incomplete" | "too_large"> =>
      database.write(async ({ queries }) => {
        const created_at = clock.now();
        const size_bytes = Buffer.byteLength(content);
        const others = await queries
          .selectFrom("pushed_manifests")
          .select(({ fn }) => fn.sum("size_bytes").as("bytes"))
          .where("owner", "=", owner)
          .where(({ not, and, eb }) => not(and([eb("repository", "=", repository), eb("digest", "=", digest)])))
          .executeTakeFirstOrThrow();
        if (Number(others.bytes ?? 0) + size_bytes > bytesMax) return "too_large";
        const touched = new Set<string>();
        for (const table of ["pushed_blobs", "pushed_manifests"] as const)
          for (const row of await queries
            .updateTable(table)
            .set({ created_at })
            .where("owner", "=", owner)
            .where("repository", "=", repository)
            .where("digest", "in", [digest, ...names])
            .returning("digest")
            .execute())
            touched.add(row.digest);
        if (!names.every((name) => touched.has(name))) return "incomplete";
        const about = { names: names.join(" "), subject: subject ?? "", size_bytes };
        const row = { media_type: mediaType, content, ...about, created_at };
        await queries
          .insertInto("pushed_manifests")
          .values({ owner, repository, digest, ...row })
          .onConflict((conflict) => conflict.columns(["owner", "repository", "digest"]).doUpdateSet(row))
          .execute();
        return "added" as const;
      }),

    /** Whether a manifest of the repository names the blob. */
    async isNamed({ owner, repository }: RepositoryKey, digest: string): Promise<boolean> {
      const row = await database.read
        .selectFrom("pushed_manifests")
        .select("digest")
        .where("owner", "=", owner)
        .where("repository", "=", repository)
        .where("names", "like", `%${digest}%`)
        .limit(1)
        .executeTakeFirst();
      return row !== undefined;
    },

    async getManifest({ owner, repository }: RepositoryKey, digest: string): Promise<PushedManifest | null> {
      const row = await database.read
        .selectFrom("pushed_manifests")
        .selectAll()
        .where("owner", "=", owner)
        .where("repository", "=", repository)
        .where("digest", "=", digest)
        .executeTakeFirst();
      return row ? { ...entryOf(row), content: row.content } : null;
    },

    async countManifests({ owner, repository }: RepositoryKey): Promise<number> {
      const { count } = await database.read
        .selectFrom("pushed_manifests")
        .select(({ fn }) => fn.countAll().as("count"))
        .where("owner", "=", owner)
        .where("repository", "=", repository)
        .executeTakeFirstOrThrow();
      return Number(count);
    },

    /** Digests of the manifests about another, the oldest first. */
    async listReferrers({ owner, repository }: RepositoryKey, subject: string): Promise<string[]> {
      const rows = await database.read
        .selectFrom("pushed_manifests")
        .select("digest")
        .where("owner", "=", owner)
        .where("repository", "=", repository)
        .where("subject", "=", subject)
        .orderBy("created_at")
        .orderBy("digest")
        .execute();
      return rows.map(({ digest }) => digest);
    },

    async listManifests({ owner, repository }: RepositoryKey): Promise<ManifestEntry[]> {
      const rows = await database.read
        .selectFrom("pushed_manifests")
        .select(["digest", "media_type", "names", "subject", "created_at"])
        .where("owner", "=", owner)
        .where("repository", "=", repository)
        .orderBy("created_at")
        .execute();
      return rows.map(entryOf);
    },

    removeManifests: (key: RepositoryKey, digests: readonly string[], olderThan?: number): Promise<void> =>
      database.write((tx) => removeRows(tx, "pushed_manifests", key, { digests, olderThan })),

    /** `olderThan`: blobs that were pushed again since stay. */
    removeBlobs: (key: RepositoryKey, digests: readonly string[], olderThan: number): Promise<void> =>
      database.write((tx) => removeRows(tx, "pushed_blobs", key, { digests, olderThan })),

    async removeRepository(tx: Transaction, key: RepositoryKey): Promise<void> {
      await removeRows(tx, "pushed_manifests", key);
      await removeRows(tx, "pushed_blobs", key);
    },

    async listRepositories(): Promise<RepositoryKey[]> {
      const blobs = database.read.selectFrom("pushed_blobs").select(["owner", "repository"]);
      return blobs.union(database.read.selectFrom("pushed_manifests").select(["owner", "repository"])).execute();
    },

    /** The blobs of all repositories. */
    async listDigests(): Promise<string[]> {
      const rows = await database.read.selectFrom("pushed_blobs").select("digest").distinct().execute();
      return rows.map(({ digest }) => digest);
    },
  };
}

const entryOf = (row: Omit<PushedManifestRow, "owner" | "repository" | "content" | "size_bytes">): ManifestEntry => ({
  digest: row.digest,
  mediaType: row.media_type,
  names: row.names === "" ? [] : row.names.split(" "),
  subject: row.subject === "" ? null : row.subject,
  createdAt: Number(row.created_at),
});
