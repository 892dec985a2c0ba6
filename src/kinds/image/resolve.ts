/** From the words with which a workload names its image to what the driver knows it as. */
import { PlatformError } from "../../contract/errors.ts";
import { parseListQuery } from "../../contract/list-query.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps } from "../port.ts";
import { IMAGE, tagsOf, typeOf } from "./images.ts";

/** Images that came as files; the driver has those of all workspaces, so nobody may name one in this way. */
export const LOADED_PREFIX = "loaded/";

const REFERENCE = /^(?:([a-z][a-z0-9-]*)\/)?([a-z0-9-]+)(?::([\w.-]+))?$/;

/** Whose workload it is, and of which kind: `tool` means `sandbox/tool` to a sandbox. */
type User = Pick<Resource, "workspace" | "kind">;

export interface FoundImage {
  /** What the driver knows it as. */
  loaded: string;
  /** When somebody last gave it this content; absent for what the operator has put there. */
  changedAt?: string;
}

/** The workspace's own come first, then what every workspace has, then what others share with this one. */
export async function findImage(
  reference: string,
  user: User,
  { store, driver, settings }: Pick<Deps, "store" | "driver" | "settings">,
): Promise<FoundImage | null> {
  // The platform's own names are nobody else's, and most sandboxes use one.
  const isPlatforms = [settings.brand, "service"].some((word) => reference.startsWith(`${word}/`));
  if (isPlatforms && (await driver.findImage(reference))) return { loaded: reference };
  const [, type, name, tag = "latest"] = REFERENCE.exec(reference) ?? [];
  const pick = (images: readonly Resource[]): FoundImage | null => {
    const fitting = images.filter((image) => type === undefined || typeOf(image) === type);
    const image = fitting.find((each) => typeOf(each) === user.kind) ?? fitting[0];
    const found = image && tagsOf(image).find((each) => each.name === tag);
    return found?.loaded === undefined ? null : { loaded: found.loaded, changedAt: found.updatedAt };
  };
  const own = name === undefined ? null : pick(await store.resources.listNamed(user.workspace, IMAGE, name));
  if (own !== null) return own;
  if (!reference.startsWith(LOADED_PREFIX) && (await driver.findImage(reference))) return { loaded: reference };
  return name === undefined ? null : pick(await store.shares.resourcesFor([user.workspace], IMAGE, name));
}

export const findDriverImage = async (
  reference: string,
  user: User,
  deps: Pick<Deps, "store" | "driver" | "settings">,
): Promise<string | null> => (await findImage(reference, user, deps))?.loaded ?? null;

/** What every workspace has, and what came as files to this one; told to those who asked for something else. */
export async function supportedImages(
  workspace: string,
  { store, driver }: Pick<Deps, "store" | "driver">,
): Promise<string[]> {
  const all = { limitDefault: SUPPORTED_MAX, limitMax: SUPPORTED_MAX };
  const { items } = await store.resources.list({ workspace, kind: IMAGE, parent: "" }, parseListQuery({}, all));
  const own = items.flatMap((image) =>
    tagsOf(image).flatMap(({ name, loaded }) => (loaded ? [`${typeOf(image)}/${image.name}:${name}`] : [])),
  );
  const common = (await driver.listImages()).map(({ name }) => name).filter((name) => !name.startsWith(LOADED_PREFIX));
  return [...common, ...own].slice(0, SUPPORTED_MAX);
}

/** Enough to find the one that was meant. */
const SUPPORTED_MAX = 50;

/** For a workload that is about to start. */
export async function driverImage(
  reference: string,
  user: User,
  deps: Pick<Deps, "store" | "driver" | "settings">,
): Promise<string> {
  const found = await findDriverImage(reference, user, deps);
  if (found === null) throw new PlatformError("bad_request", `There is no image ${reference}.`);
  return found;
}
