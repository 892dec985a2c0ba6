import { invalidField, notFound, PlatformError } from "../../contract/errors.ts";
import {
  parseReference,
  REGISTRY_TYPE,
  type Reference,
  referenceText,
  registryName,
  tagFor,
} from "../../contract/image-reference.ts";
import { parseListQuery } from "../../contract/list-query.ts";
import { BARE_LIST_MAX } from "../../contract/versions/2026-04-28.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { isCreator, requireCreator } from "../creator.ts";
import { type Call, type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { announceBuild, ownName } from "./announce-build.ts";
import { beginPull } from "./background-pull.ts";
import {
  ANY_TYPE,
  findImage,
  IMAGE,
  type ImageTag,
  imageToWire,
  recordTag,
  slotOf,
  spokenName,
  tagsOf,
  typeOf,
  usersOf,
} from "./images.ts";
import { imageFromArchive } from "./load.ts";
import {
  imageCleanup,
  imageCreate,
  imageDelete,
  imageGet,
  imageList,
  imageLoad,
  imageTagDelete,
} from "./operations.ts";
import { PULLING } from "./pull.ts";
import { placeOfImage } from "./registry/place.ts";
import { releaseImages } from "./release.ts";
import { cancelBuilds, refuseUsed, removeTags } from "./remove-tags.ts";

export const imageHandlers: readonly Implementation[] = [
  implement(imageList, async (call, deps) => {
    const { name: workspace } = workspaceOf(call);
    const [own, lent] = await Promise.all([
      listOwn(workspace, deps),
      deps.store.shares.resourcesFor([workspace], IMAGE, null),
    ]);
    const taken = new Set(own.map((image) => slotOf(typeOf(image), image.name)));
    const seen = lent.filter((image) => !taken.has(slotOf(typeOf(image), image.name)));
    return [...own, ...seen].map((image) => imageToWire(image, workspace, true));
  }),

  implement(imageGet, async (call, deps) => imageToWire(await find(call, deps), workspaceOf(call).name, false)),

  implement(imageCreate, async (call, deps) => {
    const { image, dockerConfig } = call.body;
    if (call.query.upload) return announceBuild(call, deps);
    if (image === undefined)
      throw new PlatformError(
        "unprocessable",
        "Send `image` with the reference of one in a registry, or ask with upload=true where to send an archive with a Dockerfile.",
      );
    const reference = parseReference(image);
    if (!reference) throw invalidField("image", "must be an image reference, such as ghcr.io/acme/tool:1.2");
    const { name: workspace } = workspaceOf(call);
    const isByReference = call.body.name === undefined && call.body.resourceType === undefined;
    const { name, resourceType } = isByReference
      ? { name: registryName(reference), resourceType: REGISTRY_TYPE }
      : ownName(call.body);
    const tag = call.body.tag ?? tagFor(reference);
    const known = await knownTag({ workspace, resourceType, name, tag }, reference, deps);
    if (call.query["skip-build"] && known?.digest !== undefined)
      return { name, resourceType, image, message: `It was pulled before: ${known.digest}.`, build: false };
    deps.here.puller.requireTurn(workspace);
    const actor = call.caller.displayName;
    const recorded = await recordTag(
      {
        // What was pulled before stays usable until the new pull is done.
        ...{ ...known, workspace, resourceType, name, tag, image: referenceText(reference), awaited: true },
        ...(dockerConfig === undefined ? {} : { dockerConfig }),
        status: "DEPLOYING",
        event: { type: PULLING, message: `${actor} asked for ${image}.` },
        actor,
      },
      deps,
    );
    const made = tagsOf(recorded).find((each) => each.name === tag);
    if (made) beginPull(recorded, made, deps.here);
    const message = "The image is being pulled. Its status becomes DEPLOYED, or FAILED with the reason.";
    return { name, resourceType, image, message, build: true };
  }),

  implement(imageLoad, async (call, deps) =>
    imageToWire(await imageFromArchive(call, deps.here), workspaceOf(call).name, false),
  ),

  implement(imageDelete, async (call, deps) => {
    const { name: workspace } = workspaceOf(call);
    const image = await find(call, deps);
    await refuseSeveral(call, deps);
    requireCreator(image, call);
    refuseUsed(spokenName(image), await usersOf(image, workspace, deps));
    if (image.workspace !== workspace) await deps.store.shares.remove(image.uid, workspace);
    else {
      refuseShared(spokenName(image), await deps.store.shares.listOf(image.uid));
      await remove(image, deps);
      await cancelBuilds(image, tagsOf(image), deps);
      await releaseImages(tagsOf(image), deps.here);
    }
    return imageToWire(image, workspace, false);
  }),

  implement(imageTagDelete, async (call, deps) => {
    const image = await findOwn(call, deps);
    await refuseSeveral(call, deps);
    const tag = call.params.tagName ?? "";
    if (!tagsOf(image).some(({ name }) => name === tag)) throw notFound(`Tag '${tag}' of image '${image.name}'`);
    return imageToWire(await removeTags(image, [tag], call, deps), workspaceOf(call).name, false);
  }),

  implement(imageCleanup, async (call, deps) => {
    const { name: workspace } = workspaceOf(call);
    const gone: Resource[] = [];
    for (const image of await listOwn(workspace, deps)) {
      if (!isCreator(image, call)) continue;
      const [users, shares] = [await usersOf(image, workspace, deps), await deps.store.shares.listOf(image.uid)];
      if (users.length > 0 || shares.length > 0) continue;
      if (!call.query.dryRun) {
        await remove(image, deps);
        await cancelBuilds(image, tagsOf(image), deps);
      }
      gone.push(image);
    }
    if (!call.query.dryRun) await releaseImages(gone.flatMap(tagsOf), deps.here);
    const message = `${gone.length} unused images ${call.query.dryRun ? "would be" : "are"} deleted.`;
    return { deleted: gone.length, message, images: gone.flatMap(namesOf) };
  }),
];

const listOwn = async (workspace: string, { store }: Platform): Promise<Resource[]> => {
  const all = { limitDefault: BARE_LIST_MAX, limitMax: BARE_LIST_MAX };
  return (await store.resources.list({ workspace, kind: IMAGE, parent: "" }, parseListQuery({}, all))).items;
};

type ImageCall = Pick<Call, "workspace" | "operation" | "params">;

async function find(call: ImageCall, deps: Platform): Promise<Resource> {
  const { resourceType = "", imageName = "" } = call.params;
  const image = await findImage(workspaceOf(call).name, resourceType, imageName, deps);
  if (!image) throw notFound(`image '${slotOf(resourceType, imageName)}'`);
  return image;
}

/** Finds an image for operations that only the owning workspace may perform. */
export async function findOwn(call: ImageCall, deps: Platform): Promise<Resource> {
  const image = await find(call, deps);
  if (image.workspace !== workspaceOf(call).name)
    throw new PlatformError(
      "bad_request",
      `image '${image.name}' is shared with you by '${image.workspace}'; only its own workspace can do this.`,
    );
  return image;
}

/** A delete does not choose among images of several types that have the same name. */
async function refuseSeveral(call: ImageCall, { store }: Platform): Promise<void> {
  const { resourceType, imageName = "" } = call.params;
  if (resourceType !== ANY_TYPE) return;
  const named = await store.resources.listNamed(workspaceOf(call).name, IMAGE, imageName);
  if (named.length < 2) return;
  const shown = named.map((image) => `'${slotOf(typeOf(image), image.name)}'`).join(", ");
  throw new PlatformError("bad_request", `Several images are called '${imageName}': ${shown}. Name the type, too.`);
}

const namesOf = (image: Resource): string[] => {
  const own = slotOf(typeOf(image), image.name);
  const names = tagsOf(image).map(({ name, image: source }) =>
    typeOf(image) === REGISTRY_TYPE && source !== undefined ? source : `${own}:${name}`,
  );
  return names.length > 0 ? names : [own];
};

async function remove(image: Resource, { store }: Platform): Promise<void> {
  const { key } = await placeOfImage(image, { store });
  await store.write(async (tx) => {
    await store.pushedImages.removeRepository(tx, key);
    await store.shares.removeOffersOf(tx, image.uid);
    await store.resources.remove(tx, image.workspace, image.uid);
  });
}

function refuseShared(name: string, shares: readonly { target: string }[]): void {
  if (shares.length === 0) return;
  const shown = shares.map(({ target }) => `'${target}'`).join(", ");
  throw new PlatformError("bad_request", `image '${name}' is shared with ${shown}. Take it back first.`);
}

/** The tag as it is now, when it stands for the same reference. */
async function knownTag(
  { workspace, resourceType, name, tag }: { workspace: string; resourceType: string; name: string; tag: string },
  reference: Reference,
  deps: Platform,
): Promise<ImageTag | null> {
  const record = await findImage(workspace, resourceType, name, deps);
  const found = record?.workspace === workspace ? tagsOf(record).find((each) => each.name === tag) : undefined;
  return found?.image === referenceText(reference) ? found : null;
}
