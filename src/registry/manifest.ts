/**
 * Reads what a registry has under a name: an index leads to the manifest for this machine, the manifest to the
 * configuration and the layers. Every document is bounded, and is what its digest says.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import type { Reference } from "../contract/image-reference.ts";
import {
  type descriptor,
  digest,
  INDEXES,
  indexShape,
  LAYERS,
  MANIFEST_BYTES_MAX,
  MANIFESTS,
  manifestShape,
} from "./manifest-shape.ts";
import { broken, RegistryProblem } from "./problem.ts";
import type { Source } from "./repository.ts";
import { discard, readBytes } from "./transport.ts";

export interface RemoteLayer {
  /** Digest of the compressed bytes, as the registry keeps them. */
  digest: string;
  sizeBytes: number;
}

/** An image as its registry describes it. */
export interface RemoteImage {
  /** Digest of the manifest for this machine. */
  digest: string;
  /** Digest of what the name leads to: an index, or the manifest itself. */
  named: string;
  /** The manifest for this machine, as the registry sent it. */
  manifest: Buffer;
  /** The configuration, as JSON. */
  config: Buffer;
  /** Lowest first. */
  layers: RemoteLayer[];
  /** Of all layers, compressed. */
  sizeBytes: number;
}

export interface Platform {
  os: string;
  architecture: string;
}

/** This machine, in the words of images. */
export const PLATFORM: Platform = {
  os: "linux",
  architecture: process.arch === "x64" ? "amd64" : process.arch,
};

const CONFIG_BYTES_MAX = 8 * 1024 * 1024;

const configShape = z.object({
  os: z.string().nullish(),
  architecture: z.string().nullish(),
  rootfs: z.object({ diff_ids: z.array(digest) }),
});

export interface DescribeOptions {
  signal: AbortSignal;
  /** Largest sum of compressed layers. */
  bytesMax: number;
}

/** What a name leads to now, without reading it. Null when the registry does not say. */
export async function digestOf(
  source: Source,
  { digest: fixed, tag }: Reference,
  signal: AbortSignal,
): Promise<string | null> {
  const accept = [...INDEXES, ...MANIFESTS].join(", ");
  const received = await source.send(`manifests/${fixed ?? tag}`, { method: "HEAD", headers: { accept }, signal });
  discard(received);
  return digest.safeParse(received.headers["docker-content-digest"]).data ?? null;
}

export async function describeImage(
  source: Source,
  reference: Reference,
  { signal, bytesMax }: DescribeOptions,
): Promise<RemoteImage> {
  const top = await fetchManifest(source, reference.digest ?? reference.tag, reference.digest, signal);
  const index = indexShape.safeParse(top.document);
  const chosen = index.success ? choose(index.data.manifests) : null;
  const at = chosen ? await fetchManifest(source, chosen, chosen, signal) : top;
  const { data: manifest, error } = manifestShape.safeParse(at.document);
  if (!manifest) throw notAnImage(at.document, error);
  for (const { mediaType } of manifest.layers)
    if (!LAYERS.has(mediaType))
      throw broken(`it has a layer of the unknown type ${JSON.stringify(mediaType.slice(0, 100))}`);
  const sizeBytes = manifest.layers.reduce((sum, { size }) => sum + size, 0);
  if (sizeBytes > bytesMax)
    throw new RegistryProblem(
      "too_large",
      `its layers have ${sizeBytes} bytes, more than the ${bytesMax} allowed here`,
    );
  const config = await fetchConfig(source, manifest.config, signal);
  checkConfig(config, manifest.layers.length);
  const layers = manifest.layers.map(({ digest: of, size }) => ({ digest: of, sizeBytes: size }));
  return { digest: at.digest, named: top.digest, manifest: at.bytes, config, layers, sizeBytes };
}

interface Document {
  digest: string;
  bytes: Buffer;
  document: unknown;
}

async function fetchManifest(
  source: Source,
  name: string,
  expected: string | undefined,
  signal: AbortSignal,
): Promise<Document> {
  const accept = [...INDEXES, ...MANIFESTS].join(", ");
  const received = await source.send(`manifests/${name}`, { headers: { accept }, signal });
  const told = received.headers["docker-content-digest"];
  const bytes = await readBytes(received, MANIFEST_BYTES_MAX, "its manifest");
  const actual = sha256(bytes);
  if (expected !== undefined && expected !== actual)
    throw broken(`its manifest has the digest ${actual}, not ${expected}`);
  if (told?.startsWith("sha256:") && told !== actual) throw broken("its manifest is not what the registry says it is");
  return { digest: actual, bytes, document: parseJson(bytes, "its manifest") };
}

async function fetchConfig(
  source: Source,
  { digest: of, size }: z.infer<typeof descriptor>,
  signal: AbortSignal,
): Promise<Buffer> {
  if (size > CONFIG_BYTES_MAX) throw new RegistryProblem("too_large", "its configuration is too large");
  const bytes = await readBytes(await source.send(`blobs/${of}`, { signal }), size, "its configuration");
  if (sha256(bytes) !== of) throw broken("its configuration has another digest than the manifest says");
  return bytes;
}

function checkConfig(bytes: Buffer, layers: number): void {
  const { data, error } = configShape.safeParse(parseJson(bytes, "its configuration"));
  if (!data) throw broken("its configuration does not describe an image", error);
  const { os, architecture, rootfs } = data;
  if ((architecture && architecture !== PLATFORM.architecture) || (os && os !== PLATFORM.os))
    throw wrongPlatform([`${os || PLATFORM.os}/${architecture}`]);
  if (rootfs.diff_ids.length !== layers) throw broken("its configuration and its manifest differ in their layers");
}

type Entry = z.infer<typeof indexShape>["manifests"][number];

function choose(manifests: readonly Entry[]): string {
  const fits = ({ platform: of }: Entry): boolean =>
    of?.os === PLATFORM.os && of.architecture === PLATFORM.architecture;
  // Of several variants of a processor the first is the one that the image's author prefers.
  const found = manifests.find(fits) ?? (manifests.length === 1 && !manifests[0]?.platform ? manifests[0] : undefined);
  if (found) return found.digest;
  const offered = manifests.flatMap(({ platform: of }) =>
    of && of.os !== "unknown" ? [`${of.os}/${of.architecture}`] : [],
  );
  throw wrongPlatform([...new Set(offered)].slice(0, PLATFORMS_SHOWN_MAX));
}

const PLATFORMS_SHOWN_MAX = 10;

const wrongPlatform = (offered: readonly string[]): RegistryProblem =>
  new RegistryProblem(
    "wrong_platform",
    `it is for ${offered.map((each) => each.slice(0, 50)).join(", ") || "no platform"}, and this machine is ${PLATFORM.os}/${PLATFORM.architecture} (wrong platform)`,
  );

function notAnImage(document: unknown, cause: unknown): RegistryProblem {
  const { schemaVersion } = (document ?? {}) as { schemaVersion?: unknown };
  return schemaVersion === 1
    ? broken("it has the manifest format of before 2017 (schema 1); push it again with a newer tool")
    : broken("its manifest does not describe an image", cause);
}

function parseJson(bytes: Buffer, what: string): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw broken(`${what} is not JSON`, error);
  }
}

const sha256 = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
