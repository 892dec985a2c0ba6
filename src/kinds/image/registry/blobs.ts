/** Blobs of repositories: reading one, and giving a repository a blob that the caller may read elsewhere. */
import { createReadStream } from "node:fs";
import { registryError } from "../../../contract/registry-error.ts";
import type { Deps } from "../../port.ts";
import { type KeptBlob, keptBlob } from "./kept-images.ts";
import type { RepositoryPlace } from "./place.ts";

export const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** Blobs of one workspace. Their names are in the database. */
const BLOBS_MAX = 100_000;

type BlobDeps = Pick<Deps, "store" | "blobs">;

/** Gives a repository a blob; refused when the workspace has too many, or too large ones. */
export async function keepBlob(
  { key }: Pick<RepositoryPlace, "key">,
  blob: { digest: string; sizeBytes: number },
  { store, settings }: Pick<Deps, "store" | "settings">,
): Promise<void> {
  const limits = { bytesMax: settings.registryBytesMax, blobsMax: BLOBS_MAX };
  if (await store.pushedImages.addBlob(key, blob, limits)) return;
  throw registryError(
    "usage_limit_exceeded",
    "DENIED",
    `The images of this workspace would have more than ${limits.bytesMax} bytes, or ${BLOBS_MAX} blobs. Delete some of them.`,
  );
}

/** The file on this machine. Servers of one database bring each other's blobs here. */
export const blobFile = (digest: string, { blobs }: Pick<Deps, "blobs">): Promise<string | null> =>
  blobs.find(digest.slice("sha256:".length));

export async function findBlob(
  { key }: Pick<RepositoryPlace, "key">,
  digest: string,
  deps: BlobDeps,
): Promise<{ file: string; sizeBytes: number } | null> {
  if (!DIGEST.test(digest)) return null;
  const sizeBytes = await deps.store.pushedImages.blobBytes(key, digest);
  const file = sizeBytes === null ? null : await blobFile(digest, deps);
  return sizeBytes === null || file === null ? null : { file, sizeBytes };
}

/**
 * A blob for a reader. Of an image that another workspace lends, only blobs of its manifests are told: what was pushed
 * and is in no image is not part of what was lent.
 */
async function findReadable(
  reader: Pick<RepositoryPlace, "key">,
  place: Pick<RepositoryPlace, "key">,
  digest: string,
  deps: BlobDeps,
): Promise<{ file: string; sizeBytes: number } | null> {
  const isLent = reader.key.owner !== place.key.owner;
  if (isLent && (!DIGEST.test(digest) || !(await deps.store.pushedImages.isNamed(place.key, digest)))) return null;
  return findBlob(place, digest, deps);
}

/** `isPushed`: only what was pushed. A client that asks whether a blob is there leaves it out of its push if so. */
export async function requireBlob(
  reader: Pick<RepositoryPlace, "key">,
  place: Pick<RepositoryPlace, "key" | "record">,
  digest: string,
  deps: BlobDeps & Pick<Deps, "driver" | "partOfPeer">,
  isPushed: boolean,
): Promise<KeptBlob> {
  const found = await findReadable(reader, place, digest, deps);
  if (found) return { ...found, open: async (range) => createReadStream(found.file, range) };
  const kept = isPushed ? null : await keptBlob(place, digest, deps);
  if (kept) return kept;
  throw registryError("not_found", "BLOB_UNKNOWN", "This repository has no such blob.");
}

/** True when the source has the blob, and the target has it now, too. */
export async function mountBlob(
  target: Pick<RepositoryPlace, "key">,
  source: Pick<RepositoryPlace, "key">,
  digest: string,
  deps: BlobDeps & Pick<Deps, "settings">,
): Promise<boolean> {
  const found = await findReadable(target, source, digest, deps);
  if (found) await keepBlob(target, { digest, sizeBytes: found.sizeBytes }, deps);
  return found !== null;
}
