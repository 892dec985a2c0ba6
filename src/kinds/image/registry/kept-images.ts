/**
 * Images that were pulled, built or loaded, as the registry serves them. Their parts are on the machines that have the
 * image: this one, or another one of the platform.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { BASE_LABEL } from "../../../contract/image-base.ts";
import { registryError } from "../../../contract/registry-error.ts";
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
  /** The layers stand on the platform's own base, which is not among them. */
  lacksBase: boolean;
}

export interface KeptBlob {
  sizeBytes: number;
  open(range?: { start: number; end: number }): Promise<Readable>;
  /** Of a blob that is a file of this machine. */
  file?: string;
  /** Of an image that is served without its base. */
  lacksBase?: boolean;
}

type KeptDeps = Pick<Deps, "driver" | "partOfPeer">;

/** Small manifests by their digests, which say everything about them. Every blob that is read asks for one. */
const known = new Map<string, KeptManifest>();
const KNOWN_MAX = 1000;
const KNOWN_BYTES_MAX = 64 * 1024;

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
  const stream = (await partHere(loaded, digest, deps))?.open() ?? (await deps.partOfPeer(loaded, digest));
  const content = stream && (await readDocument(stream, digest));
  if (!content) return null;
  const document: unknown = JSON.parse(content.toString("utf8"));
  const { config, layers } = manifestShape.parse(document);
  const sizes = new Map([config, ...layers].map((each) => [each.digest, each.size]));
  const manifest = { digest, mediaType: mediaTypeOf(document), content, sizes, lacksBase: saysOnBase(document) };
  if (content.length > KNOWN_BYTES_MAX) return manifest;
  if (known.size >= KNOWN_MAX) known.clear();
  known.set(digest, manifest);
  return manifest;
}

/** The author of an image wrote the manifest: no other type becomes a header. */
function mediaTypeOf(document: unknown): string {
  const said = (document as { mediaType?: unknown }).mediaType;
  return MANIFESTS.find((type) => type === said) ?? MANIFESTS[0] ?? "";
}

const saysOnBase = (document: unknown): boolean =>
  (document as { annotations?: Record<string, unknown> }).annotations?.[BASE_LABEL] !== undefined;

/** A blob that the manifest of one of the image's tags names: nobody gets another by knowing its digest. */
export async function keptBlob(
  { record }: Pick<RepositoryPlace, "record">,
  digest: string,
  deps: KeptDeps,
): Promise<KeptBlob | null> {
  for (const tag of record ? tagsOf(record) : []) {
    const manifest = isKept(tag) ? await keptManifest(tag, deps) : null;
    const sizeBytes = manifest?.sizes.get(digest);
    const { loaded } = tag;
    if (loaded === undefined || sizeBytes === undefined) continue;
    const lacksBase = manifest?.lacksBase === true;
    const here = await partHere(loaded, digest, deps);
    const file = here?.file;
    if (file !== undefined) return { sizeBytes, lacksBase, file, open: async (range) => createReadStream(file, range) };
    return {
      sizeBytes,
      lacksBase,
      async open(range) {
        const content = here ? here.open() : await deps.partOfPeer(loaded, digest);
        if (!content) throw registryError("not_found", "BLOB_UNKNOWN", "No machine that answers has this blob.");
        return ranged(content, range);
      },
    };
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

const partHere = async (loaded: string, digest: string, { driver }: KeptDeps): Promise<ImagePart | null> =>
  (await (await driver.capability("images"))?.part?.(loaded, digest)) ?? null;

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
