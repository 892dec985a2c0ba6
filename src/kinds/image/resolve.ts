/** Resolves the image reference in a workload's spec to the driver's name for the image. */

import { PlatformError } from "../../contract/errors.ts";
import { parseListQuery } from "../../contract/list-query.ts";
import type { Driver } from "../../node/driver.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps } from "../port.ts";
import { IMAGE, tagsOf, typeOf } from "./images.ts";

/**
 * Driver names of uploaded images. The driver holds those of all workspaces, so a reference may not use this prefix.
 */
export const LOADED_PREFIX = "loaded/";

const REFERENCE = /^(?:([a-z][a-z0-9-]*)\/)?([a-z0-9-]+)(?::([\w.-]+))?$/;

/** The workload's workspace and kind. The reference `tool` in a sandbox means `sandbox/tool`. */
type User = Pick<Resource, "workspace" | "kind">;

export interface FoundImage {
  /** The driver's name for the image. */
  loaded: string;
  /** When the tag last got new content; absent for images that the operator installed. */
  changedAt?: string;
}

/** Searches the workspace's own images first, then the installed ones, then those shared with the workspace. */
export async function findImage(
  reference: string,
  user: User,
  { store, driver, settings }: Pick<Deps, "store" | "driver" | "settings">,
): Promise<FoundImage | null> {
  // Names of the platform's own images are reserved, and most sandboxes use one, so the driver is asked first.
  const isPlatforms = [settings.brand, "service"].some((word) => reference.startsWith(`${word}/`));
  if (isPlatforms && (await knowsImage(driver, reference))) return { loaded: reference };
  const [, type, name, tag = "latest"] = REFERENCE.exec(reference) ?? [];
  const pick = (images: readonly Resource[]): FoundImage | null => {
    const fitting = images.filter((image) => type === undefined || typeOf(image) === type);
    const image = fitting.find((each) => typeOf(each) === user.kind) ?? fitting[0];
    const found = image && tagsOf(image).find((each) => each.name === tag);
    return found?.loaded === undefined ? null : { loaded: found.loaded, changedAt: found.updatedAt };
  };
  const own = name === undefined ? null : pick(await store.resources.listNamed(user.workspace, IMAGE, name));
  if (own !== null) return own;
  if (!reference.startsWith(LOADED_PREFIX) && (await knowsImage(driver, reference))) return { loaded: reference };
  return name === undefined ? null : pick(await store.shares.resourcesFor([user.workspace], IMAGE, name));
}

/** A driver that keeps no images is asked with the name as it stands, and refuses it when the workload is created. */
export async function knowsImage(driver: Driver, reference: string): Promise<boolean> {
  const images = await driver.capability("images");
  return images === null || (await images.find(reference)) !== null;
}

export const findDriverImage = async (
  reference: string,
  user: User,
  deps: Pick<Deps, "store" | "driver" | "settings">,
): Promise<string | null> => (await findImage(reference, user, deps))?.loaded ?? null;

/** Installed images and the workspace's own uploads, listed in the error about an unknown image. */
export async function supportedImages(
  workspace: string,
  { store, driver }: Pick<Deps, "store" | "driver">,
): Promise<string[]> {
  const all = { limitDefault: SUPPORTED_MAX, limitMax: SUPPORTED_MAX };
  const { items } = await store.resources.list({ workspace, kind: IMAGE, parent: "" }, parseListQuery({}, all));
  const own = items.flatMap((image) =>
    tagsOf(image).flatMap(({ name, loaded }) => (loaded ? [`${typeOf(image)}/${image.name}:${name}`] : [])),
  );
  const common = ((await (await driver.capability("images"))?.list()) ?? [])
    .map(({ name }) => name)
    .filter((name) => !name.startsWith(LOADED_PREFIX));
  return [...common, ...own].slice(0, SUPPORTED_MAX);
}

/** Images listed in the error message. */
const SUPPORTED_MAX = 50;

/** Resolves the image of a workload that is about to start; throws when there is none. */
export async function driverImage(
  reference: string,
  user: User,
  deps: Pick<Deps, "store" | "driver" | "settings">,
): Promise<string> {
  const found = await findDriverImage(reference, user, deps);
  if (found === null) throw new PlatformError("bad_request", `There is no image ${reference}.`);
  return found;
}
