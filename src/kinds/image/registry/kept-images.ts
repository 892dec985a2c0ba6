/**
 * Images that were pulled, built or loaded, as the registry serves them. Their parts are on the machines that have the
 * image: this one, or another one of the platform.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import type { ImagePart } from "../../../node/capabilities/images.ts";
import { MANIFEST_BYTES_MAX, MANIFESTS, manifestShape } from "../../../registry/manifest-shape.ts";
import type { Deps } from "../../port.ts";
import { type ImageTag, tagsOf } from "../images.ts";
import type { RepositoryPlace } from "./place.ts";

export interface KeptManifest {
  digest: string;
  mediaType: string;
  content: Buffer;
  /** Bytes of the configuration and the layers, by their digests. */
  sizes: ReadonlyMap<string, number>;
}

export interface KeptBlob {
  sizeBytes: number;
  open(range?: { start: number; end: number }): Promise<Readable>;
  /** Of a blob that is a file of this machine. */
  file?: string;
}

type KeptDeps = Pick<Deps, "driver" | "partOfPeer">;

/** Manifests by their digests, which say everything about them. Every blob that is read asks for one. */
const known = new Map<string, KeptManifest>();
const KNOWN_MAX = 1000;

/** The tag that the reference, a name or a digest, leads to; null when none of these images is meant. */
export const keptTag = ({ record }: Pick<RepositoryPlace, "record">, reference: string): ImageTag | null =>
  (record ? tagsOf(record) : []).find((tag) => isKept(tag) && (tag.name === reference || tag.digest === reference)) ??
  null;

const isKept = ({ loaded, digest, pushed }: ImageTag): boolean =>
  !pushed && loaded !== undefined && digest !== undefined;

/** The manifest of what runs by this tag; null when no machine that answers has it. */
export async function keptManifest({ loaded, digest }: ImageTag, deps: KeptDeps): Promise<KeptManifest | null> {
  if (loaded === undefined || digest === undefined) return null;
  const before = known.get(digest);
  if (before) return before;
  const stream = await openPart(loaded, digest, deps);
  const content = stream && (await readDocument(stream.open(), digest));
  if (!content) return null;
  const { mediaType, ...document } = JSON.parse(content.toString("utf8")) as { mediaType?: string };
  const { config, layers } = manifestShape.parse(document);
  const sizes = new Map([config, ...layers].map((each) => [each.digest, each.size]));
  const manifest = { digest, mediaType: mediaType ?? MANIFESTS[0] ?? "", content, sizes };
  if (known.size >= KNOWN_MAX) known.clear();
  known.set(digest, manifest);
  return manifest;
}

/** A blob that the manifest of one of the image's tags names: nobody gets another by knowing its digest. */
export async function keptBlob(
  { record }: Pick<RepositoryPlace, "record">,
  digest: string,
  deps: KeptDeps,
): Promise<KeptBlob | null> {
  for (const tag of record ? tagsOf(record) : []) {
    const sizeBytes = isKept(tag) ? (await keptManifest(tag, deps))?.sizes.get(digest) : undefined;
    const part = sizeBytes === undefined ? null : await openPart(tag.loaded ?? "", digest, deps);
    if (!part || sizeBytes === undefined) continue;
    const { file } = part;
    if (file === undefined) return { sizeBytes, open: async (range) => ranged(part.open(), range) };
    return { sizeBytes, file, open: async (range) => createReadStream(file, range) };
  }
  return null;
}

/** Skips to the range: these bytes are made, or come from another machine, one after the other. */
function ranged(content: Readable, range: { start: number; end: number } | undefined): Readable {
  if (!range) return content;
  return Readable.from(between(content, range), { objectMode: false });
}

async function* between(content: AsyncIterable<Buffer>, { start, end }: { start: number; end: number }) {
  let at = 0;
  for await (const chunk of content) {
    const part = chunk.subarray(Math.max(0, start - at), Math.max(0, end + 1 - at));
    at += chunk.length;
    if (part.length > 0) yield part;
    if (at > end) return;
  }
}

async function openPart(
  loaded: string,
  digest: string,
  { driver, partOfPeer }: KeptDeps,
): Promise<Pick<ImagePart, "open" | "file"> | null> {
  const here = await (await driver.capability("images"))?.part?.(loaded, digest);
  if (here) return here;
  const there = await partOfPeer(loaded, digest);
  return there && { open: () => there };
}

/** Null when the bytes are not what the digest says. */
async function readDocument(stream: Readable, digest: string): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MANIFEST_BYTES_MAX) return null;
    chunks.push(chunk);
  }
  const content = Buffer.concat(chunks);
  return `sha256:${createHash("sha256").update(content).digest("hex")}` === digest ? content : null;
}
