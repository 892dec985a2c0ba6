import { notFound, PlatformError } from "../../contract/errors.ts";
import { parseListQuery } from "../../contract/list-query.ts";
import { BARE_LIST_MAX } from "../../contract/versions/2026-04-28.ts";
import type { Resource } from "../../store/resources/resource.ts";
import { isCreator, requireCreator } from "../creator.ts";
import { type Call, type Implementation, implement, type Platform, workspaceOf } from "../port.ts";
import { findImage, IMAGE, imageToWire, recordTag, slotOf, tagsOf, typeOf, usersOf } from "./images.ts";
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
    const { name, resourceType, image, dockerConfig } = call.body;
    if (image === undefined || call.query.upload)
      throw new PlatformError(
        "unprocessable",
        "This server does not build images from sources. Send `image` with the reference of one in a registry.",
      );
    const message =
      "The reference is recorded under this name. Nothing has been fetched: whether the image exists and runs shows when a workload uses it.";
    await recordTag(
      {
        ...{ workspace: workspaceOf(call).name, resourceType, name, tag: tagIn(image), image },
        ...(dockerConfig === undefined ? {} : { dockerConfig }),
        status: "DEPLOYING",
        event: { type: "recorded", message: `${image} was recorded by ${call.caller.displayName}; it is not fetched.` },
        actor: call.caller.displayName,
      },
      deps,
    );
    return { name, resourceType, image, message, build: false };
  }),

  implement(imageLoad, async (call, deps) =>
    imageToWire(await imageFromArchive(call, deps.here), workspaceOf(call).name, false),
  ),

  implement(imageDelete, async (call, deps) => {
    const { name: workspace } = workspaceOf(call);
    const image = await find(call, deps);
    requireCreator(image, call);
    refuseUsed(image, await usersOf(image, workspace, deps));
    if (image.workspace !== workspace) await deps.store.shares.remove(image.uid, workspace);
    else {
      refuseShared(image, await deps.store.shares.listOf(image.uid));
      await remove(image, deps);
    }
    return imageToWire(image, workspace, false);
  }),

  implement(imageTagDelete, async (call, deps) => {
    const { name: workspace } = workspaceOf(call);
    const image = await findOwn(call, deps);
    requireCreator(image, call);
    const tag = call.params.tagName ?? "";
    if (!tagsOf(image).some(({ name }) => name === tag)) throw notFound(`Tag '${tag}' of image '${image.name}'`);
    refuseUsed(image, await usersOf(image, workspace, deps, tag));
    const changed = await deps.store.resources.update(workspace, image.uid, (current) => ({
      spec: { ...current.spec, tags: tagsOf(current).filter(({ name }) => name !== tag) },
      actor: call.caller.displayName,
      event: { type: "updated", message: `Tag '${tag}' was deleted by ${call.caller.displayName}.` },
    }));
    if (!changed) throw notFound(`image '${image.name}'`);
    return imageToWire(changed, workspace, false);
  }),

  implement(imageCleanup, async (call, deps) => {
    const { name: workspace } = workspaceOf(call);
    let deleted = 0;
    for (const image of await listOwn(workspace, deps)) {
      if (!isCreator(image, call)) continue;
      const [users, shares] = [await usersOf(image, workspace, deps), await deps.store.shares.listOf(image.uid)];
      if (users.length > 0 || shares.length > 0) continue;
      await remove(image, deps);
      deleted += 1;
    }
    return { deleted, message: `${deleted} unused images are deleted.` };
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

const remove = (image: Resource, { store }: Platform): Promise<void> =>
  store.write(async (tx) => {
    await store.shares.removeOffersOf(tx, image.uid);
    await store.resources.remove(tx, image.workspace, image.uid);
  });

function refuseUsed({ name }: Resource, users: readonly Resource[]): void {
  if (users.length === 0) return;
  const shown = users.map((user) => `${user.kind} '${user.name}'`).join(", ");
  throw new PlatformError("bad_request", `image '${name}' is in use by ${shown}. Delete or change that first.`);
}

function refuseShared({ name }: Resource, shares: readonly { target: string }[]): void {
  if (shares.length === 0) return;
  const shown = shares.map(({ target }) => `'${target}'`).join(", ");
  throw new PlatformError("bad_request", `image '${name}' is shared with ${shown}. Take it back first.`);
}

/** The tag of a reference; a colon before the last slash belongs to the registry's port. */
function tagIn(reference: string): string {
  const last = reference.replace(/@.*$/, "").split("/").at(-1) ?? "";
  return last.split(":")[1] ?? "latest";
}
