import { registryError } from "../../../contract/registry-error.ts";
import type { Call, Platform } from "../../port.ts";
import { tagsOf } from "../images.ts";
import { removeTags } from "../remove-tags.ts";
import { DIGEST } from "./blobs.ts";
import { requireManifest } from "./manifests.ts";
import type { RepositoryPlace } from "./place.ts";

/** Deletes a tag; or, by its digest, a manifest with every tag that leads to it. */
export async function deleteManifest(
  place: RepositoryPlace,
  reference: string,
  asker: Pick<Call, "caller" | "role">,
  deps: Platform,
): Promise<void> {
  const { record, key } = place;
  if (!record) throw registryError("not_found", "NAME_UNKNOWN", "There is no such image.");
  if (!DIGEST.test(reference)) {
    if (!tagsOf(record).some(({ name }) => name === reference))
      throw registryError("not_found", "MANIFEST_UNKNOWN", "There is no such tag.");
    await removeTags(record, [reference], asker, deps);
    return;
  }
  const { digest } = await requireManifest(place, reference, deps);
  const led = tagsOf(record).filter(({ pushed, named, digest: run }) => pushed && [named, run].includes(digest));
  await removeTags(
    record,
    led.map(({ name }) => name),
    asker,
    deps,
  );
  await deps.store.pushedImages.removeManifests(key, [digest]);
}
