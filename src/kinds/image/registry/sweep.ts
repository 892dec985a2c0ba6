/** Removes from repositories what no tag leads to any more. The files of blobs go with the sweep of archives. */
import { DAY_MS } from "../../../lib/time/clock.ts";
import type { ManifestEntry, RepositoryKey } from "../../../store/pushed-images.ts";
import type { Deps } from "../../port.ts";
import { type ImageTag, tagsOf } from "../images.ts";
import { allImages } from "../release.ts";
import { placeOfImage } from "./place.ts";

/** A manifest without a tag can be pulled by its digest for this long. */
const UNTAGGED_MAX_MS = 7 * DAY_MS;
/** A push may take this long from its first blob to its manifest. */
const UNNAMED_MAX_MS = DAY_MS;

/** Blobs removed from a repository at a time. */
const REMOVED_MAX = 10_000;

type SweepDeps = Pick<Deps, "store" | "clock">;

export async function sweepPushed(deps: SweepDeps, signal: AbortSignal): Promise<void> {
  const repositories = await deps.store.pushedImages.listRepositories();
  if (repositories.length === 0) return;
  const tags = new Map<string, ImageTag[]>();
  for await (const image of allImages(deps, signal))
    if (tagsOf(image).some(({ pushed }) => pushed))
      tags.set(textOf((await placeOfImage(image, deps)).key), tagsOf(image));
  for (const key of repositories) {
    signal.throwIfAborted();
    await sweepRepository(key, tags.get(textOf(key)) ?? [], deps);
  }
}

const textOf = ({ owner, repository }: RepositoryKey): string => `${owner} ${repository}`;

async function sweepRepository(
  key: RepositoryKey,
  tags: readonly ImageTag[],
  { store: { pushedImages }, clock }: SweepDeps,
): Promise<void> {
  const now = clock.now();
  const manifests = await pushedImages.listManifests(key);
  const reached = reachable(manifests, tags);
  const isKept = ({ digest, createdAt }: ManifestEntry): boolean =>
    reached.has(digest) || createdAt + UNTAGGED_MAX_MS > now;
  const old = manifests.filter((each) => !isKept(each)).map(({ digest }) => digest);
  if (old.length > 0) await pushedImages.removeManifests(key, old, now - UNTAGGED_MAX_MS);
  const named = new Set(manifests.filter(isKept).flatMap(({ names }) => names));
  const unnamed = (await pushedImages.listBlobs(key))
    .filter(({ digest, createdAt }) => !named.has(digest) && createdAt + UNNAMED_MAX_MS < now)
    .map(({ digest }) => digest);
  if (unnamed.length > 0) await pushedImages.removeBlobs(key, unnamed.slice(0, REMOVED_MAX), now - UNNAMED_MAX_MS);
}

/** What tags lead to, what that names, and what is about any of these. */
function reachable(manifests: readonly ManifestEntry[], tags: readonly ImageTag[]): Set<string> {
  const reached = new Set(tags.flatMap(({ named, digest }) => [named ?? "", digest ?? ""]));
  for (let size = -1; size !== reached.size; ) {
    size = reached.size;
    for (const { digest, names, subject } of manifests) {
      if (subject !== null && reached.has(subject)) reached.add(digest);
      if (reached.has(digest)) for (const name of names) reached.add(name);
    }
  }
  return reached;
}
