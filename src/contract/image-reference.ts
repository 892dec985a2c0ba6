/**
 * Names of images in registries: `python:3.12`, `ghcr.io/acme/tool@sha256:…`. The rules for short names are Docker's:
 * the first part is a host when it holds a dot or a colon or is `localhost`; any other name is on Docker Hub, below
 * `library/` when it has one part.
 */
import { createHash } from "node:crypto";

export interface Reference {
  /** As people write it: `docker.io`, `ghcr.io`, `127.0.0.1:5000`. */
  registry: string;
  repository: string;
  tag: string;
  /** When present, the digest decides and the tag says nothing. */
  digest?: string;
}

export const DOCKER_HUB = "docker.io";
/** Other names of Docker Hub. */
const DOCKER_HUB_ALIASES = new Set(["index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"]);
/** The host that answers for Docker Hub. */
const DOCKER_HUB_HOST = "registry-1.docker.io";
const OFFICIAL = "library/";
const LATEST = "latest";

const LENGTH_MAX = 512;
const HOST = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?$/;
const PART = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** Null for a text that is not the name of an image. */
export function parseReference(text: string): Reference | null {
  if (text.length > LENGTH_MAX) return null;
  const [named = "", digest, ...more] = text.split("@");
  if (more.length > 0 || (digest !== undefined && !DIGEST.test(digest))) return null;
  const slash = named.lastIndexOf("/");
  const colon = named.indexOf(":", slash + 1);
  const tag = colon < 0 ? LATEST : named.slice(colon + 1);
  const place = placeOf(colon < 0 ? named : named.slice(0, colon));
  if (!place || !TAG.test(tag)) return null;
  return { ...place, tag, ...(digest === undefined ? {} : { digest }) };
}

function placeOf(text: string): Pick<Reference, "registry" | "repository"> | null {
  const [first = "", ...rest] = text.split("/");
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === "localhost");
  if (isHost && !HOST.test(first)) return null;
  const host = isHost ? first.toLowerCase() : DOCKER_HUB;
  const registry = DOCKER_HUB_ALIASES.has(host) ? DOCKER_HUB : host;
  const parts = isHost ? rest : [first, ...rest];
  if (!parts.every((part) => PART.test(part))) return null;
  const path = parts.join("/");
  return { registry, repository: registry === DOCKER_HUB && parts.length === 1 ? `${OFFICIAL}${path}` : path };
}

/** `docker.io/library/python`: one text for all spellings. */
export const repositoryText = ({ registry, repository }: Pick<Reference, "registry" | "repository">): string =>
  `${registry}/${repository}`;

/** `docker.io/library/python:3.12`, or with the digest in place of the tag. */
export const referenceText = (reference: Reference): string =>
  repositoryText(reference) + (reference.digest === undefined ? `:${reference.tag}` : `@${reference.digest}`);

/** The host and port to dial. */
export const hostOf = (registry: string): string => (registry === DOCKER_HUB ? DOCKER_HUB_HOST : registry);

/** Every way to write the repository; the first is the canonical one. */
export function spellingsOf({ registry, repository }: Pick<Reference, "registry" | "repository">): string[] {
  const full = `${registry}/${repository}`;
  if (registry !== DOCKER_HUB) return [full];
  const short = repository.startsWith(OFFICIAL) ? [repository.slice(OFFICIAL.length)] : [];
  const hosts = [DOCKER_HUB, ...DOCKER_HUB_ALIASES];
  return [repository, ...short].flatMap((path) => [...hosts.map((host) => `${host}/${path}`), path]);
}

/** The type of records for images that workloads name by their reference in a registry. */
export const REGISTRY_TYPE = "registry";

/** Longest readable part of a record's name. */
const READABLE_MAX = 40;

/** A name for the record of a repository. Docker Hub's official images keep theirs; others get a hash, to be unique. */
export function registryName(reference: Reference): string {
  const text = repositoryText(reference);
  const official = /^docker\.io\/library\/([a-z0-9-]{1,40})$/.exec(text)?.[1];
  if (official !== undefined) return official;
  const readable = text
    .replace(/[^a-z0-9]+/g, "-")
    .slice(-READABLE_MAX)
    .replace(/^-+|-+$/g, "");
  return `${readable}-${createHash("sha256").update(text).digest("hex").slice(0, 8)}`;
}

/** A digest is a tag of its own. */
export const tagFor = ({ tag, digest }: Reference): string => digest?.replace(":", "-") ?? tag;
