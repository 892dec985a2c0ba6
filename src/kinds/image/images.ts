/** Image records: their tags, their origin, the workspaces that see them and the workloads that use them. */
import type { z } from "zod";
import { notFound, PlatformError } from "../../contract/errors.ts";
import type { Status } from "../../contract/fields.ts";
import { parseReference, REGISTRY_TYPE, repositoryText, spellingsOf } from "../../contract/image-reference.ts";
import { uuidv7 } from "../../lib/ids.ts";
import { toIso } from "../../lib/time/clock.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { NewEvent } from "../../store/resources/resources.ts";
import type { Platform } from "../port.ts";
import type { imageShape } from "./operations.ts";

export const IMAGE = "image";
/** Matches any resource type in a path. */
export const ANY_TYPE = "_";
/** Kinds whose spec names an image. */
export const USERS = ["agent", "application", "function", "job", "sandbox"];
export const TAGS_MAX = 1000;

/** When the registry of an image is asked. */
export type PullPolicy = "Always" | "IfNotPresent" | "Never";

export interface ImageTag {
  name: string;
  /** The reference that the tag was made from. */
  image?: string;
  sizeBytes?: number;
  /** The driver's name for the image; absent until the image has been fetched. */
  loaded?: string;
  /** Digest of the manifest that was pulled: what runs. */
  digest?: string;
  /** Digest that the reference led to then: an index of several platforms, or the manifest. */
  named?: string;
  /** A client pushed it to the platform's registry. */
  pushed?: true;
  /** Fingerprint of the public key that is known to have signed this content. */
  signedBy?: string;
  /** A client asked for a pull that has not ended. */
  awaited?: true;
  /** An archive with a Dockerfile is awaited or built. */
  building?: true;
  /** The last pull or build failed, and no earlier one left anything. */
  failed?: true;
  createdAt: string;
  updatedAt: string;
}

export interface NewTag {
  workspace: string;
  resourceType: string;
  name: string;
  tag: string;
  image?: string;
  sizeBytes?: number;
  loaded?: string;
  digest?: string;
  named?: string;
  pushed?: true;
  awaited?: true;
  building?: true;
  /** Registry credentials. */
  dockerConfig?: string;
  status: Status;
  event: NewEvent;
  actor: string;
}

type ImageDeps = Pick<Platform, "store" | "clock">;

export const slotOf = (resourceType: string, name: string): string => `${resourceType}/${name}`;
export const typeOf = (image: Resource): string => String(image.spec.resourceType);
export const tagsOf = ({ spec }: { spec: { tags?: ImageTag[] } }): ImageTag[] => spec.tags ?? [];

/** The image, or one tag of it, as people name it: by its reference when workloads do. */
export function spokenName(image: Resource, tag?: string): string {
  const source = tagsOf(image).find(({ name }) => tag === undefined || name === tag)?.image;
  const reference = typeOf(image) === REGISTRY_TYPE ? parseReference(source ?? "") : null;
  if (!reference || !source) return image.name;
  return tag === undefined && tagsOf(image).length > 1 ? repositoryText(reference) : source;
}

/** Adds a tag or replaces the tag of the same name. The first tag creates the image. */
export async function recordTag(draft: NewTag, { store, clock }: ImageDeps): Promise<Resource> {
  const { workspace, resourceType, name, actor, status, event } = draft;
  const now = toIso(clock.now());
  const tag: ImageTag = {
    name: draft.tag,
    ...defined({ image: draft.image, sizeBytes: draft.sizeBytes, loaded: draft.loaded }),
    ...defined({
      digest: draft.digest,
      named: draft.named,
      pushed: draft.pushed,
      awaited: draft.awaited,
      building: draft.building,
    }),
    createdAt: now,
    updatedAt: now,
  };
  const secrets = draft.dockerConfig === undefined ? {} : { dockerConfig: draft.dockerConfig };
  return store.write(async (tx) => {
    const made = await store.resources.insert(tx, {
      ...{ workspace, kind: IMAGE, parent: "", uid: uuidv7(clock.now()), name, slot: slotOf(resourceType, name) },
      metadata: {},
      spec: { resourceType, tags: [tag] },
      secrets,
      state: {},
      status,
      events: [event],
      revision: false,
      actor,
      settled: true,
    });
    if (made.outcome === "created") return made.resource;
    const changed = await store.resources.modify(tx, workspace, made.resource.uid, (current) => {
      const before = tagsOf(current).find((known) => known.name === tag.name);
      const others = tagsOf(current).filter((known) => known.name !== tag.name);
      if (others.length >= TAGS_MAX)
        throw new PlatformError("usage_limit_exceeded", `image '${name}' has ${TAGS_MAX} tags already. Delete some.`);
      // The age of a tag is that of its content: it decides whether code may have secrets that it was not given.
      const isSame = tag.digest !== undefined && before?.digest === tag.digest;
      const dates = { createdAt: before?.createdAt ?? now, updatedAt: isSame ? before.updatedAt : now };
      const tags = [...others, { ...tag, ...dates }];
      return {
        spec: { ...current.spec, tags },
        secrets: { ...store.resources.secretsOf(current), ...secrets },
        status,
        event,
        actor,
      };
    });
    if (!changed) throw notFound(`image '${name}'`);
    return changed;
  });
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Without the members that are undefined. */
const defined = <T extends object>(members: T): Defined<T> =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Defined<T>;

/** The workspace's own image of this name, otherwise a borrowed one. */
export async function findImage(
  workspace: string,
  resourceType: string,
  name: string,
  { store }: Pick<Platform, "store">,
): Promise<Resource | null> {
  const fits = (image: Resource): boolean => resourceType === ANY_TYPE || typeOf(image) === resourceType;
  const own = await store.resources.listNamed(workspace, IMAGE, name);
  const found = own.find(fits);
  if (found) return found;
  return (await store.shares.resourcesFor([workspace], IMAGE, name)).find(fits) ?? null;
}

/** Workloads of the owning or borrowing workspace that use the image, or one tag of it. */
export async function usersOf(
  image: Resource,
  workspace: string,
  { store }: Pick<Platform, "store">,
  { tag, limit = USERS_SHOWN_MAX }: { tag?: string; limit?: number } = {},
): Promise<Resource[]> {
  const names = [slotOf(typeOf(image), image.name), ...otherNamesOf(image)];
  const endings = tag === undefined ? ['"', ":", "@"] : [endingOf(tag), ...(tag === "latest" ? ['"'] : [])];
  const texts = names.flatMap((name) => endings.map((ending) => `"image":"${name}${ending}`));
  return store.resources.listWithSpecText([workspace], USERS, texts, limit);
}

/** An image is named by its name alone; one that a workload named by its reference, by every spelling of that. */
function otherNamesOf(image: Resource): string[] {
  if (typeOf(image) !== REGISTRY_TYPE) return [image.name];
  const reference = parseReference(tagsOf(image)[0]?.image ?? "");
  return reference ? spellingsOf(reference) : [];
}

const endingOf = (tag: string): string => (tag.startsWith("sha256-") ? `@${tag.replace("-", ":")}"` : `:${tag}"`);

/** Workloads named in a refusal, to keep the message short. */
const USERS_SHOWN_MAX = 3;

const DEPLOYED = { status: "DEPLOYED" } as const;
const BUILDING = { status: "BUILDING" } as const;
const DEPLOYING = { status: "DEPLOYING" } as const;
const FAILED = { status: "FAILED" } as const;

export function imageToWire(image: Resource, viewer: string, inList: boolean): z.input<typeof imageShape> {
  const tags = tagsOf(image);
  const sizes = tags.flatMap(({ sizeBytes }) => (sizeBytes === undefined ? [] : [sizeBytes]));
  const { lastDeployedAt } = image.state;
  return {
    metadata: {
      name: image.name,
      ...(image.metadata.displayName === undefined ? {} : { displayName: image.metadata.displayName }),
      resourceType: typeOf(image),
      workspace: viewer,
      ...(viewer === image.workspace ? {} : { sourceWorkspace: image.workspace }),
      ...(image.status === null ? {} : { status: image.status as Status }),
      ...(inList || viewer !== image.workspace ? {} : { events: image.events }),
      createdAt: toIso(image.createdAt),
      updatedAt: toIso(image.updatedAt),
      ...(typeof lastDeployedAt === "string" ? { lastDeployedAt } : {}),
    },
    spec: {
      ...(sizes.length > 0 ? { size: sizes.reduce((sum, size) => sum + size, 0) } : {}),
      tags: tags.map(
        ({ sizeBytes, loaded, named: _, pushed: __, signedBy: ___, awaited, building, failed, ...tag }) => ({
          ...tag,
          ...(loaded ? DEPLOYED : building ? BUILDING : awaited ? DEPLOYING : failed ? FAILED : {}),
          ...(sizeBytes === undefined ? {} : { size: sizeBytes }),
        }),
      ),
    },
  };
}
