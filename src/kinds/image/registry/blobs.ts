/** Blobs of repositories: reading one, and giving a repository a blob that the caller may read elsewhere. */
import { registryError } from "../../../contract/registry-error.ts";
import type { Deps } from "../../port.ts";
import type { RepositoryPlace } from "./place.ts";

export const DIGEST = /^sha256:[0-9a-f]{64}$/;

type BlobDeps = Pick<Deps, "store" | "blobs">;

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

export async function requireBlob(
  place: Pick<RepositoryPlace, "key">,
  digest: string,
  deps: BlobDeps,
): Promise<{ file: string; sizeBytes: number }> {
  const found = await findBlob(place, digest, deps);
  if (found) return found;
  throw registryError("not_found", "BLOB_UNKNOWN", "This repository has no such blob.");
}

/** True when the source has the blob, and the target has it now, too. */
export async function mountBlob(
  target: Pick<RepositoryPlace, "key">,
  source: Pick<RepositoryPlace, "key">,
  digest: string,
  deps: BlobDeps,
): Promise<boolean> {
  const found = await findBlob(source, digest, deps);
  if (found) await deps.store.pushedImages.addBlob(target.key, digest, found.sizeBytes);
  return found !== null;
}
