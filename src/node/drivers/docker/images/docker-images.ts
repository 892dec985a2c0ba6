/** Images of the engine, as workloads start from them. */
import { PlatformError } from "../../../../contract/errors.ts";
import type { Image } from "../../../capabilities/images.ts";
import { baseEnv } from "../../../images/base-names.ts";
import { type DockerImage, imageSchema } from "../engine/answers.ts";
import { type DockerClient, DockerRefusal } from "../engine/docker-client.ts";

/** An image as a create needs it. */
export interface ResolvedImage extends Image {
  /** `USER` of the image: a name or a number, with or without a group. */
  userSpec: string;
}

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** The base images in the engine, one for each state of the machine's programs. */
export const baseRepo = (brand: string): string => `${brand}/base-image`;

/** `name` means `name:latest`. */
export const normalise = (name: string): string => (/:[^/]*$/.test(name) ? name : `${name}:latest`);

export interface ImageNames {
  brand: string;
  /** Id of the image that the base names stand for. */
  base: string;
  /** Name of this node in the engine. Images that the platform loaded have it before the slash. */
  owner: string;
}

/** Names that a node gives to what it keeps in the engine; no client may ask for those of any node. */
const OWNED = /^[a-z][a-z0-9]*-[0-9a-f]{8}\//;
/** Snapshots of a node are images of this name below its own. A label tells nothing: images bring labels along. */
export const SNAPSHOTS = "snapshot";
const REFERENCE = /^[a-z0-9][\w./:-]{0,254}$/i;

/**
 * The image of a name: the base image, an image that was loaded for this node, or any other that the engine holds under
 * exactly that name. An id, or a name in another spelling, is not a name: it could lead to an image of another owner.
 */
export async function findImage(client: DockerClient, names: ImageNames, name: string): Promise<ResolvedImage | null> {
  const wanted = normalise(name);
  // A command names its program: whatever the base image would start by itself is no part of what it stands for.
  const ownEnv = baseEnv(wanted, names.brand);
  if (ownEnv !== null) {
    const base = resolved(await need(client, names.base), wanted);
    return { ...base, env: { ...base.env, ...ownEnv }, argv: [] };
  }
  if (!REFERENCE.test(wanted) || OWNED.test(wanted) || wanted.startsWith(`${SNAPSHOTS}:`)) return null;
  for (const reference of [`${names.owner}/${wanted}`, wanted]) {
    const found = await lookUp(client, reference);
    if (found?.RepoTags?.includes(reference)) return resolved(found, wanted);
  }
  return null;
}

/** The engine refuses some names as names, such as one with a port behind a slash. No image has such a name. */
async function lookUp(client: DockerClient, reference: string): Promise<DockerImage | null> {
  try {
    return await client.find(imageSchema, `/images/${encodePath(reference)}/json`);
  } catch (error) {
    if (error instanceof DockerRefusal && error.status === 400) return null;
    throw error;
  }
}

async function need(client: DockerClient, id: string): Promise<DockerImage> {
  const found = await client.find(imageSchema, `/images/${encodePath(id)}/json`);
  if (!found) throw new PlatformError("unavailable", "The base image was removed from Docker. Start the server anew.");
  return found;
}

/** Slashes of a name are part of the path. */
export const encodePath = (name: string): string => name.split("/").map(encodeURIComponent).join("/");

export function resolved(image: DockerImage, name: string): ResolvedImage {
  const { Config: config } = image;
  return {
    name,
    digest: image.Id,
    sizeBytes: image.Size,
    env: { PATH: DEFAULT_PATH, HOME: "/root", ...environmentOf(config?.Env ?? []) },
    workDir: config?.WorkingDir || "/",
    argv: [...(config?.Entrypoint ?? []), ...(config?.Cmd ?? [])],
    createdAt: timeOf(image.Created),
    userSpec: config?.User ?? "",
  };
}

/** An imported image may have no time. */
const timeOf = (created: string | null | undefined): string => {
  const ms = Date.parse(created ?? "");
  return new Date(Number.isNaN(ms) ? 0 : ms).toISOString();
};

function environmentOf(lines: readonly string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const line of lines) {
    const equals = line.indexOf("=");
    if (equals > 0) env[line.slice(0, equals)] = line.slice(equals + 1);
  }
  return env;
}
