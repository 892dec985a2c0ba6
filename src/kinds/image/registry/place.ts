/** Repositories of the platform's registry: `workspace/tool` or `workspace/agent/tool` is an image of a workspace. */
import * as fields from "../../../contract/fields.ts";
import { REGISTRY_TYPE } from "../../../contract/image-reference.ts";
import { registryError } from "../../../contract/registry-error.ts";
import type { RepositoryKey } from "../../../store/pushed-images.ts";
import type { Resource } from "../../../store/resources/resource.ts";
import type { Platform } from "../../port.ts";
import { IMAGE, slotOf, typeOf } from "../images.ts";
import { resourceType } from "../operations.ts";

/** The type of an image that is pushed without one: workloads of every kind find it by its name. */
const TYPE_DEFAULT = "sandbox";

export interface RepositoryName {
  workspace: string;
  /** Null: any. */
  resourceType: string | null;
  name: string;
}

export interface RepositoryPlace {
  key: RepositoryKey;
  /** The workspace that the image belongs to. */
  workspace: string;
  resourceType: string;
  name: string;
  /** Null while nothing was pushed under a tag. */
  record: Resource | null;
}

export function parseRepository(path: string): RepositoryName {
  const parts = path.split("/");
  const [workspace = "", type, name] = parts.length === 3 ? parts : [parts[0], null, parts[1]];
  const isType = type === null || (resourceType.safeParse(type).success && type !== REGISTRY_TYPE);
  const isName = [workspace, name].every((word) => fields.name.safeParse(word).success);
  if (parts.length < 2 || parts.length > 3 || !isType || !isName)
    throw registryError(
      "bad_request",
      "NAME_INVALID",
      "A repository is WORKSPACE/IMAGE or WORKSPACE/TYPE/IMAGE, of lower-case letters, digits and hyphens.",
    );
  return { workspace, resourceType: type ?? null, name: name ?? "" };
}

type PlaceDeps = Pick<Platform, "store">;

/** Where a push goes: the workspace's own image, which may not be there yet. */
export async function ownPlace(asked: RepositoryName, { store }: PlaceDeps): Promise<RepositoryPlace> {
  const record = chosen(await store.resources.listNamed(asked.workspace, IMAGE, asked.name), asked);
  return placeOf(asked.workspace, record ? typeOf(record) : (asked.resourceType ?? TYPE_DEFAULT), asked.name, record, {
    store,
  });
}

/** Where a pull reads: the workspace's own image, otherwise one that another workspace shares with it. */
export async function readablePlace(asked: RepositoryName, { store }: PlaceDeps): Promise<RepositoryPlace> {
  const own = await ownPlace(asked, { store });
  if (own.record) return own;
  const lent = chosen(await store.shares.resourcesFor([asked.workspace], IMAGE, asked.name), asked);
  return lent ? placeOfImage(lent, { store }) : own;
}

export const placeOfImage = (record: Resource, deps: PlaceDeps): Promise<RepositoryPlace> =>
  placeOf(record.workspace, typeOf(record), record.name, record, deps);

function chosen(images: readonly Resource[], { resourceType: type }: RepositoryName): Resource | null {
  const fitting = images.filter((image) => (type === null ? typeOf(image) !== REGISTRY_TYPE : typeOf(image) === type));
  return fitting.find((image) => typeOf(image) === TYPE_DEFAULT) ?? fitting[0] ?? null;
}

async function placeOf(
  workspace: string,
  type: string,
  name: string,
  record: Resource | null,
  deps: PlaceDeps,
): Promise<RepositoryPlace> {
  const key = { owner: await ownerOf(workspace, deps), repository: slotOf(type, name) };
  return { key, workspace, resourceType: type, name, record };
}

/** The workspace as caches and repositories know it: a later workspace of the same name is another. */
export async function ownerOf(workspace: string, { store }: PlaceDeps): Promise<string> {
  const found = await store.workspaces.get(workspace);
  return `${workspace}/${found?.createdAt ?? 0}`;
}
