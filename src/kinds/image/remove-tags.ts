/** Deletes tags of an image that no workload uses. */
import { notFound, PlatformError } from "../../contract/errors.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { requireCreator } from "../creator.ts";
import type { Call, Platform } from "../port.ts";
import { buildId, withBuild } from "./build.ts";
import { type ImageTag, spokenName, tagsOf, usersOf } from "./images.ts";
import { releaseImages } from "./release.ts";

export async function removeTags(
  image: Resource,
  names: readonly string[],
  asker: Pick<Call, "caller" | "role">,
  deps: Platform,
): Promise<Resource> {
  const { workspace } = image;
  requireCreator(image, asker);
  const gone = tagsOf(image).filter(({ name }) => names.includes(name));
  for (const { name } of gone)
    refuseUsed(spokenName(image, name), await usersOf(image, workspace, deps, { tag: name }));
  const shown = gone.map(({ name }) => `'${name}'`).join(", ");
  const actor = asker.caller.displayName;
  const changed = await deps.store.resources.update(workspace, image.uid, (current) => {
    const left = tagsOf(current).filter(({ name }) => !names.includes(name));
    const isWhole = left.length > 0 && left.every(({ loaded, awaited }) => loaded !== undefined && !awaited);
    return {
      spec: { ...current.spec, tags: left },
      state: names.reduce((state, name) => withBuild(state, name, undefined), current.state),
      ...(isWhole ? { status: "DEPLOYED" as const } : {}),
      actor,
      event: { type: "updated", message: `Tag ${shown} was deleted by ${actor}.` },
    };
  });
  if (!changed) throw notFound(`image '${image.name}'`);
  await cancelBuilds(image, gone, deps);
  await releaseImages(tagsOf(image), deps.here);
  return changed;
}

export async function cancelBuilds(
  { uid }: Resource,
  tags: readonly Pick<ImageTag, "name">[],
  { here }: Platform,
): Promise<void> {
  for (const { name } of tags) await here.builder.cancel(buildId(uid, name));
}

export function refuseUsed(name: string, users: readonly Resource[]): void {
  if (users.length === 0) return;
  const shown = users.map((user) => `${user.kind} '${user.name}'`).join(", ");
  throw new PlatformError("bad_request", `image '${name}' is in use by ${shown}. Delete or change that first.`);
}
