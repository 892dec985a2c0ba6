/**
 * Manifests that clients push. A manifest is taken when everything that it names is in the same repository. One that is
 * pushed under a tag and describes an image for this machine is unpacked before it is answered, like a pulled image: a
 * push that succeeds can be run.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { registryError } from "../../../contract/registry-error.ts";
import type { Pulled } from "../../../node/images/puller.ts";
import {
  type descriptor,
  digest as digestShape,
  holdsFiles,
  INDEXES,
  indexShape,
  MANIFESTS,
  manifestShape,
} from "../../../registry/manifest-shape.ts";
import { PullRefused } from "../../../registry/problem.ts";
import type { PushedManifest } from "../../../store/pushed-images.ts";
import type { Resource } from "../../../store/resources/resource.ts";
import type { Deps } from "../../port.ts";
import { recordTag, tagsOf } from "../images.ts";
import { tagName } from "../operations.ts";
import { releaseImages } from "../release.ts";
import { DIGEST, findBlob } from "./blobs.ts";
import { doorReference } from "./door-reference.ts";
import { keptManifest, keptTag } from "./kept-images.ts";
import { ownRequest } from "./own-source.ts";
import type { RepositoryPlace } from "./place.ts";

/** Manifests of one repository. */
const MANIFESTS_MAX = 10_000;
/** Bytes of all manifests of a workspace, which are in the database. One has some kilobytes. */
const WORKSPACE_BYTES_MAX = 256 * 1024 * 1024;
/** Manifests that one index names. All names of a repository are held in memory when it is swept. */
const NAMES_MAX = 256;

export interface NewManifest {
  /** A tag, or the digest of the manifest. */
  reference: string;
  mediaType: string;
  bytes: Buffer;
  actor: string;
}

const subjectShape = z.object({
  mediaType: z.string().optional(),
  subject: z.object({ digest: digestShape }).nullish(),
});

/** The digest of what the reference leads to; null when the repository has no such tag. */
export function digestIn({ record }: Pick<RepositoryPlace, "record">, reference: string): string | null {
  if (DIGEST.test(reference)) return reference;
  const tag = record && tagsOf(record).find(({ name }) => name === reference);
  return tag?.pushed ? (tag.named ?? null) : null;
}

export async function requireManifest(
  place: RepositoryPlace,
  reference: string,
  { store }: Pick<Deps, "store">,
): Promise<PushedManifest> {
  const digest = digestIn(place, reference);
  const found = digest === null ? null : await store.pushedImages.getManifest(place.key, digest);
  if (found) return found;
  throw registryError("not_found", "MANIFEST_UNKNOWN", `This repository has no ${reference.slice(0, 150)}.`);
}

/** The manifest that the reference leads to, for a client that pulls: pushed, or of an image that a machine keeps. */
export async function readableManifest(
  place: RepositoryPlace,
  reference: string,
  deps: Deps,
): Promise<Pick<PushedManifest, "digest" | "mediaType"> & { content: Buffer }> {
  const tag = keptTag(place, reference);
  const kept = tag && (await keptManifest(tag, deps));
  if (kept) return kept;
  if (tag?.name === reference) throw unserved(reference);
  const { digest, mediaType, content } = await requireManifest(place, reference, deps);
  return { digest, mediaType, content: Buffer.from(content) };
}

const unserved = (reference: string): Error =>
  registryError(
    "not_found",
    "MANIFEST_UNKNOWN",
    `No machine that answers can serve ${reference.slice(0, 150)}. Pull, build or load it again.`,
  );

export async function putManifest(
  place: RepositoryPlace,
  { reference, mediaType, bytes, actor }: NewManifest,
  deps: Deps,
): Promise<PushedManifest> {
  const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  if (DIGEST.test(reference) && reference !== digest)
    throw registryError("bad_request", "DIGEST_INVALID", `The manifest has the digest ${digest}, not ${reference}.`);
  if (!DIGEST.test(reference) && !tagName.safeParse(reference).success)
    throw registryError("bad_request", "TAG_INVALID", "A tag has letters, digits, dots, hyphens and underscores.");
  const { document, ...manifest } = parsed(bytes, digest, mediaType);
  await requireParts(place, document, deps);
  const isKnown = (await deps.store.pushedImages.getManifest(place.key, digest)) !== null;
  if (!isKnown && (await deps.store.pushedImages.countManifests(place.key)) >= MANIFESTS_MAX)
    throw registryError("usage_limit_exceeded", "DENIED", `A repository has at most ${MANIFESTS_MAX} manifests.`);
  const added = await deps.store.pushedImages.addManifest(place.key, manifest, WORKSPACE_BYTES_MAX);
  if (added === "too_large")
    throw registryError(
      "usage_limit_exceeded",
      "DENIED",
      `The manifests of a workspace have at most ${WORKSPACE_BYTES_MAX} bytes. Delete some of them.`,
    );
  if (added === "incomplete")
    throw registryError(
      "not_found",
      "MANIFEST_BLOB_UNKNOWN",
      "What the manifest names was removed meanwhile. Push again.",
    );
  if (DIGEST.test(reference)) return manifest;
  try {
    await keepTag(place, reference, digest, "manifests" in document || holdsFiles(document), actor, deps);
  } catch (error) {
    if (!isKnown) await deps.store.pushedImages.removeManifests(place.key, [digest]);
    throw error;
  }
  return manifest;
}

type Document = z.infer<typeof indexShape> | z.infer<typeof manifestShape>;

const invalid = (reason: string, cause?: unknown): Error =>
  registryError("bad_request", "MANIFEST_INVALID", reason, cause === undefined ? {} : { cause });

function parsed(bytes: Buffer, digest: string, sentType: string): PushedManifest & { document: Document } {
  const content = bytes.toString("utf8");
  if (!Buffer.from(content).equals(bytes)) throw invalid("The manifest is not UTF-8.");
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    throw invalid("The manifest is not JSON.", error);
  }
  const { data: common, error } = subjectShape.safeParse(value);
  if (!common) throw invalid("The manifest does not describe an image.", error);
  const mediaType = common.mediaType ?? sentType;
  const isIndex = INDEXES.includes(mediaType);
  if (mediaType !== sentType || !(isIndex || MANIFESTS.includes(mediaType)))
    throw invalid(`The Content-Type is ${sentType.slice(0, 100)}, the manifest's ${mediaType.slice(0, 100)}.`);
  const { data: document, error: problem } = (isIndex ? indexShape : manifestShape).safeParse(value);
  if (!document) throw invalid("The manifest does not describe an image.", problem);
  const named = "manifests" in document ? document.manifests : [document.config, ...document.layers];
  const names = [...new Set(named.map((each) => each.digest))];
  return { digest, mediaType, content, names, subject: common.subject?.digest ?? null, document };
}

/** Everything that the manifest names is in the repository, and as large as the manifest says. */
async function requireParts(place: RepositoryPlace, document: Document, deps: Deps): Promise<void> {
  const { pushedImages } = deps.store;
  if ("manifests" in document) {
    if (document.manifests.length > NAMES_MAX)
      throw invalid(`An index names at most ${NAMES_MAX} manifests here, not ${document.manifests.length}.`);
    for (const { digest, size } of document.manifests) {
      const found = await pushedImages.getManifest(place.key, digest);
      requirePart(digest, size, found && Buffer.byteLength(found.content));
    }
    return;
  }
  for (const { digest, size } of [document.config, ...document.layers])
    requirePart(digest, size, (await findBlob(place, digest, deps))?.sizeBytes ?? null);
  const bytes = document.layers.reduce((sum, { size }) => sum + size, 0);
  if (bytes > deps.settings.imageBytesMax)
    throw registryError(
      "payload_too_large",
      "SIZE_INVALID",
      `The layers have ${bytes} bytes, more than the ${deps.settings.imageBytesMax} allowed here.`,
    );
}

function requirePart(digest: z.infer<typeof descriptor>["digest"], size: number, actual: number | null): void {
  if (actual === null)
    throw registryError(
      "not_found",
      "MANIFEST_BLOB_UNKNOWN",
      `The manifest names ${digest}, which was not pushed here.`,
    );
  if (actual !== size)
    throw registryError("bad_request", "SIZE_INVALID", `${digest} has ${actual} bytes; the manifest says ${size}.`);
}

/** The tag leads to the manifest from now on; an image for this machine is unpacked first. */
async function keepTag(
  place: RepositoryPlace,
  tag: string,
  digest: string,
  isImage: boolean,
  actor: string,
  deps: Deps,
): Promise<Resource> {
  const { workspace, resourceType, name, record } = place;
  const keep = async (pulled?: Pulled): Promise<Resource> => {
    const before = record && tagsOf(record).find((each) => each.name === tag);
    const content = pulled
      ? { loaded: pulled.name, digest: pulled.digest, named: pulled.named, sizeBytes: pulled.sizeBytes }
      : { digest, named: digest };
    const event = { type: "pushed", message: `Tag '${tag}' was pushed by ${actor}: ${digest}.` };
    const recorded = await recordTag(
      { ...{ workspace, resourceType, name, tag, actor, event }, ...content, pushed: true, status: "DEPLOYED" },
      deps,
    );
    if (before && before.loaded !== pulled?.name) await releaseImages([before], deps);
    return recorded;
  };
  // A driver that keeps no images leaves the pull to its engine, which reads from this registry.
  if (!isImage || (await deps.driver.capability("images")) === null) return keep();
  const request = ownRequest(place, { ...doorReference(place, tag, deps), digest }, workspace, deps);
  try {
    return await deps.puller.pull(request, { signal: new AbortController().signal }, keep);
  } catch (error) {
    if (!(error instanceof PullRefused)) throw error;
    // An image for other machines is kept for them.
    if (error.reason === "wrong_platform") return keep();
    throw invalid(error.message, error);
  }
}
