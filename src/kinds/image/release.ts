/** Removes images from this machine that no tag refers to any more. */
import { BUILT_PREFIX } from "../../node/builds/step-names.ts";
import { PULLED_PREFIX } from "../../node/images/puller.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps } from "../port.ts";
import { IMAGE, type ImageTag, tagsOf } from "./images.ts";
import { LOADED_PREFIX } from "./resolve.ts";

const PAGE = 500;
const PREFIXES = [LOADED_PREFIX, PULLED_PREFIX, BUILT_PREFIX];

export type SweepDeps = Pick<Deps, "store" | "driver" | "clock"> &
  Partial<Pick<Deps, "puller" | "blobUploads" | "builder" | "blobs" | "disk">>;

/** Removes what deleted or changed tags referred to, unless another record has it, too. */
export async function releaseImages(tags: readonly Pick<ImageTag, "loaded">[], deps: SweepDeps): Promise<void> {
  const gone = new Set(tags.map(({ loaded }) => loaded));
  await removeUnnamed(deps, new AbortController().signal, ({ name }) => gone.has(plainName(name)));
}

const plainName = (name: string): string => name.replace(/:latest$/, "");

/** Of the images that are meant, those go that no tag names; then the layers that nothing stands on. */
export async function removeUnnamed(
  deps: SweepDeps,
  signal: AbortSignal,
  isMeant: (image: { name: string; createdAt: string }) => boolean,
): Promise<void> {
  const images = await deps.driver.capability("images");
  if (images === null) return;
  const isOurs = (name: string): boolean => PREFIXES.some((prefix) => name.startsWith(prefix));
  const meant = (await images.list()).filter((image) => isOurs(image.name) && isMeant(image));
  if (meant.length === 0) return images.sweep?.();
  const named = new Set<string | undefined>();
  for await (const image of allImages(deps, signal)) for (const { loaded } of tagsOf(image)) named.add(loaded);
  // Images that were built from the code of a workload; the sweep of bundles removes those.
  for (const { key } of (await deps.blobs?.listNotes()) ?? [])
    named.add(((await deps.blobs?.readNote(key)) as { image?: string } | null)?.image);
  for (const name of meant.map((image) => plainName(image.name))) {
    signal.throwIfAborted();
    if (!named.has(name) && !deps.puller?.isHeld(name) && !deps.builder?.isHeld(name)) await images.remove(name);
  }
  await images.sweep?.();
}

/** The image records of all workspaces. */
export async function* allImages({ store }: Pick<Deps, "store">, signal: AbortSignal): AsyncGenerator<Resource> {
  for (let after = ""; ; ) {
    signal.throwIfAborted();
    const page = await store.resources.listAcrossWorkspaces(IMAGE, after, PAGE);
    yield* page;
    after = page.at(-1)?.uid ?? "";
    if (page.length < PAGE) return;
  }
}
