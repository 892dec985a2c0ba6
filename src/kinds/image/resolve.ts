/**
 * Resolves the image reference in a workload's spec: to an image that this machine has, or to a place in a registry
 * that it can be pulled from. Nothing here asks a registry; see pull.ts.
 */

import {
  parseReference,
  REGISTRY_TYPE,
  type Reference,
  referenceText,
  registryName,
  tagFor,
} from "../../contract/image-reference.ts";
import { parseListQuery } from "../../contract/list-query.ts";
import { BUILT_PREFIX, STEP_PREFIX } from "../../node/builds/step-names.ts";
import type { Driver } from "../../node/driver.ts";
import { PULLED_PREFIX } from "../../node/images/puller.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps } from "../port.ts";
import { IMAGE, type ImageTag, tagsOf, typeOf, USERS } from "./images.ts";
import { doorReference } from "./registry/door-reference.ts";

/**
 * Driver names of uploaded images. The driver holds those of all workspaces, so a reference may not use this prefix.
 */
export const LOADED_PREFIX = "loaded/";
/** Names that only the platform gives. */
const DRIVERS_OWN = [LOADED_PREFIX, PULLED_PREFIX, BUILT_PREFIX, STEP_PREFIX];

const REFERENCE = /^(?:([a-z][a-z0-9-]*)\/)?([a-z0-9-]+)(?::([\w.-]+))?$/;

/** The workload's workspace and kind. The reference `tool` in a sandbox means `sandbox/tool`. */
export type User = Pick<Resource, "workspace" | "kind">;

type ResolveDeps = Pick<Deps, "store" | "driver" | "settings">;

export interface FoundImage {
  /** The driver's name for the image. */
  loaded: string;
  /** When the tag last got new content; null for images that the operator installed. */
  changedAt: string | null;
  /** Digest of the manifest, for an image of a registry. */
  digest?: string;
}

/** An image of a registry, and the tag that it is recorded under. */
export interface RegistryImage {
  reference: Reference;
  place: { workspace: string; resourceType: string; name: string; tag: string };
  /** What was pulled before; null when nothing was. */
  known: ImageTag | null;
  /** The record with the credentials for the registry; null when there is no record yet. */
  record: Resource | null;
}

export type Resolved = { found: FoundImage } | { remote: RegistryImage };

/**
 * Searches the workspace's own images first, then the installed ones, then those shared with the workspace. Any other
 * reference means a registry.
 */
export async function resolveReference(
  reference: string,
  user: User,
  { store, driver, settings }: ResolveDeps,
): Promise<Resolved | null> {
  // Names of the platform's own images are reserved, and most sandboxes use one, so the driver is asked first.
  const isPlatforms = [settings.brand, "service"].some((word) => reference.startsWith(`${word}/`));
  if (isPlatforms && (await knowsImage(driver, reference))) return { found: { loaded: reference, changedAt: null } };
  const [, type, name, tag = "latest"] = REFERENCE.exec(reference) ?? [];
  const pick = (images: readonly Resource[]): Resolved | null => {
    const fitting = images.filter((image) => typeOf(image) === type || (type === undefined && !isOfRegistry(image)));
    const image = fitting.find((each) => typeOf(each) === user.kind) ?? fitting[0];
    const found = image && tagsOf(image).find((each) => each.name === tag);
    return found ? ofTag(image, found, { settings }) : null;
  };
  const own = name === undefined ? null : pick(await store.resources.listNamed(user.workspace, IMAGE, name));
  if (own !== null) return own;
  const isDriversOwn = DRIVERS_OWN.some((prefix) => reference.startsWith(prefix));
  if (isDriversOwn) return null;
  if (await knowsImage(driver, reference)) return { found: { loaded: reference, changedAt: null } };
  const lent = name === undefined ? null : pick(await store.shares.resourcesFor([user.workspace], IMAGE, name));
  if (lent !== null) return lent;
  const isPlace = isPlatforms || [...USERS, REGISTRY_TYPE].some((word) => reference.startsWith(`${word}/`));
  const parsed = isPlace ? null : parseReference(reference);
  return parsed && { remote: await ofRegistry(parsed, user.workspace, { store }) };
}

const isOfRegistry = (image: Resource): boolean => typeOf(image) === REGISTRY_TYPE;

/**
 * An image that was pushed, or has a source, can be pulled; so can one that was built or loaded, from the machine that
 * has it. Of an image without a manifest, which drivers that keep no layers make, no other machine gets a copy.
 */
function ofTag(record: Resource, known: ImageTag, deps: Pick<Deps, "settings">): Resolved | null {
  const { name, loaded, image, updatedAt } = known;
  const place = { workspace: record.workspace, resourceType: typeOf(record), name: record.name, tag: name };
  const named = image === undefined ? null : parseReference(image);
  const reference = isOwn(known) ? doorReference(place, name, deps) : named;
  if (!reference) return loaded === undefined ? null : { found: { loaded, changedAt: updatedAt } };
  return { remote: { reference, place, known: known.digest === undefined ? null : known, record } };
}

/** Whether the platform itself is the source of the tag's content. */
export const isOwn = ({ pushed, image, named }: ImageTag): boolean =>
  pushed === true || (image === undefined && named !== undefined);

async function ofRegistry(
  reference: Reference,
  workspace: string,
  { store }: Pick<Deps, "store">,
): Promise<RegistryImage> {
  const place = { workspace, resourceType: REGISTRY_TYPE, name: registryName(reference), tag: tagFor(reference) };
  const named = await store.resources.listNamed(workspace, IMAGE, place.name);
  const record = named.find(isOfRegistry) ?? null;
  const known =
    record &&
    tagsOf(record).find(
      ({ name, digest, image }) => name === place.tag && digest !== undefined && image === referenceText(reference),
    );
  return { reference, place, known: known ?? null, record };
}

/** The image on this machine; null when it is not here, whether or not it could be pulled. */
export async function findImage(reference: string, user: User, deps: ResolveDeps): Promise<FoundImage | null> {
  const resolved = await resolveReference(reference, user, deps);
  if (resolved === null) return null;
  return "found" in resolved ? resolved.found : localCopy(resolved.remote, deps);
}

/** What an earlier pull left on this machine. */
export async function localCopy(
  { known }: RegistryImage,
  { driver }: Pick<Deps, "driver">,
): Promise<FoundImage | null> {
  if (known?.loaded === undefined || !(await knowsImage(driver, known.loaded))) return null;
  const { loaded, updatedAt: changedAt, digest } = known;
  return { loaded, changedAt, ...(digest === undefined ? {} : { digest }) };
}

/** A driver that keeps no images is asked with the name as it stands, and refuses it when the workload is created. */
export async function knowsImage(driver: Driver, reference: string): Promise<boolean> {
  const images = await driver.capability("images");
  return images === null || (await images.find(reference)) !== null;
}

export const findDriverImage = async (reference: string, user: User, deps: ResolveDeps): Promise<string | null> =>
  (await findImage(reference, user, deps))?.loaded ?? null;

/** Installed images and the workspace's own uploads, listed in the error about an unknown image. */
export async function supportedImages(
  workspace: string,
  { store, driver }: Pick<Deps, "store" | "driver">,
): Promise<string[]> {
  const all = { limitDefault: SUPPORTED_MAX, limitMax: SUPPORTED_MAX };
  const { items } = await store.resources.list({ workspace, kind: IMAGE, parent: "" }, parseListQuery({}, all));
  const own = items.flatMap((image) =>
    tagsOf(image).flatMap(({ name, loaded, image: source }) =>
      loaded ? [isOfRegistry(image) && source ? source : `${typeOf(image)}/${image.name}:${name}`] : [],
    ),
  );
  const common = ((await (await driver.capability("images"))?.list()) ?? [])
    .map(({ name }) => name)
    .filter((name) => !DRIVERS_OWN.some((prefix) => name.startsWith(prefix)));
  return [...common, ...own].slice(0, SUPPORTED_MAX);
}

/** Images listed in the error message. */
const SUPPORTED_MAX = 50;
