/**
 * Loads images from files: the output of `docker save`, and OCI image layouts in a tar. Needs neither a registry nor
 * Docker. The archive is untrusted: every size is bounded, and every layer is addressed by the digest of its actual
 * content.
 */

import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, mkdir, open, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { PlatformError } from "../../../../contract/errors.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { ArchiveFile } from "../../../../unpack/job.ts";
import type { LayerNotes } from "../../../../unpack/layer.ts";
import type { Image } from "../../../capabilities/images.ts";
import type { CallOptions } from "../../../dial/endpoint.ts";
import type { Unpack } from "../../common/unpack-job.ts";
import type { Spawner } from "../calls/spawner.ts";
import { writeMarks } from "../unpack/marks.ts";
import type { Identity } from "../workload/launch-program.ts";
import { budgetFor, unpackedMax } from "./image-budget.ts";
import { type ImageConfig, isForHere, parseConfig, parseJson, refused, runningOf } from "./image-config.ts";
import { chained, type ImageStore, type KeptNotes, keepLayer, saveManifest, unfinished } from "./images.ts";

/** Most files in an archive: each layer, and a few small files beside it. */
const FILES_MAX = 10_000;
const LAYERS_MAX = 128; // as many as image tools make; an overlay allows 500
/** Largest manifest or configuration; real ones have a few kilobytes. */
const JSON_BYTES_MAX = 8 * 1024 * 1024;

/** The parts of the driver that loading an image uses. */
export interface Loader {
  store: ImageStore;
  spawner: Spawner;
  unpack: Unpack;
  /** Identity of workloads: layers keep the owners of the archive, except where all files belong to one user. */
  identity: Identity;
}

export async function loadImage(
  loader: Loader,
  tarPath: string,
  name: string,
  options: CallOptions = {},
): Promise<Image> {
  const { store } = loader;
  const temp = unfinished(store, "load");
  await mkdir(temp, { recursive: true });
  try {
    const bytesMax = await unpackedMax((await stat(tarPath)).size, temp);
    const archive = await openArchive(loader, tarPath, join(temp, "plain"), bytesMax, options);
    const source = await describe(archive);
    const { layers, sizeBytes } = await unpackLayers(loader, archive, source, join(temp, "layers"), bytesMax, options);
    const running = runningOf(
      source.config,
      layers.map(({ dir }) => dir),
    );
    for (const { dir, digest, notes } of layers) keepLayer(store, digest, dir, notes);
    return saveManifest(store, {
      name,
      digest: digestOf(source, layers[0]?.digest),
      sizeBytes,
      ...running,
      createdAt: new Date().toISOString(),
      layers: layers.map(({ digest }) => digest),
    });
  } catch (error) {
    throw error instanceof PlatformError || options.signal?.aborted ? error : refused("it cannot be read", error);
  } finally {
    await removeTree(temp);
  }
}

/**
 * The digest of an image stands for all of its files: prepared workloads are kept by it. A configuration that names its
 * layers covers them; otherwise the layers become part of the digest.
 */
const digestOf = ({ config, digest }: Description, topmost: string | undefined): string =>
  config.rootfs?.diff_ids || topmost === undefined ? digest : chained(topmost, digest);

interface LoadedLayers {
  /** Topmost first. */
  layers: { dir: string; digest: string; notes: KeptNotes }[];
  sizeBytes: number;
}

/** Whether files keep the owners that the archive names. */
export const keepsOwners = ({ identity }: Loader): boolean => process.getuid?.() === 0 && identity.kind !== "user";

/** Makes an unpacked layer ready for an overlay. */
export async function settleLayer({ spawner, identity }: Loader, dir: string, notes: LayerNotes): Promise<void> {
  // The job is not trusted: a link in place of the folder would be followed when it is mounted.
  if (!(await lstat(dir)).isDirectory()) throw new Error("an unpacked layer is not a folder");
  await writeMarks(spawner, dir, notes, identity);
}

async function unpackLayers(
  loader: Loader,
  archive: Archive,
  source: Description,
  target: string,
  bytesMax: number,
  options: CallOptions,
): Promise<LoadedLayers> {
  const described = source.config.rootfs?.diff_ids ?? null;
  if (described !== null && described.length !== source.layers.length)
    throw refused("its description names other layers than it holds");
  await mkdir(target);
  const budget = budgetFor(bytesMax);
  const wanted = source.layers.map((file, index) => {
    const { start, size } = archive.find(file);
    return { name: `layer-${index}`, start, size };
  });
  const work = { kind: "layers" as const, layers: wanted, lowers: [], budget, owners: keepsOwners(loader) };
  const answer = await loader.unpack({ work, archive: archive.path, target }, options);
  const made: LoadedLayers = { layers: [], sizeBytes: 0 };
  for (const [index, layer] of answer.layers.entries()) {
    if (described !== null && described[index] !== layer.digest) throw refused("a layer's content has another digest");
    const dir = join(target, `layer-${index}`);
    await settleLayer(loader, dir, layer);
    made.sizeBytes += layer.sizeBytes;
    const { opaque, sizeBytes } = layer;
    const digest = chained(made.layers[0]?.digest, layer.digest);
    made.layers.unshift({ dir, digest, notes: { opaque, sizeBytes, blobs: [] } });
  }
  return made;
}

const dockerSchema = z.array(z.object({ Config: z.string(), Layers: z.array(z.string()).max(LAYERS_MAX) })).min(1);
const descriptorSchema = z.object({
  mediaType: z.string().optional(),
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  platform: z.object({ architecture: z.string() }).optional(),
});
const indexSchema = z.object({ manifests: z.array(descriptorSchema).min(1) });
const manifestSchema = z.object({ config: descriptorSchema, layers: z.array(descriptorSchema).max(LAYERS_MAX) });

interface Description {
  digest: string;
  config: ImageConfig;
  /** Name of the configuration in the archive. */
  configName: string;
  /** Names in the archive, lowest first. */
  layers: string[];
}

export async function describe(archive: Archive): Promise<Description> {
  if (archive.has("manifest.json")) {
    const [image] = dockerSchema.parse(await archive.json("manifest.json"));
    if (!image) throw refused("its manifest is empty");
    return { ...(await readConfig(archive, image.Config)), layers: image.Layers };
  }
  if (!archive.has("index.json")) throw refused("it holds neither manifest.json nor index.json");
  let at = "index.json";
  // An index may lead to another, one per architecture.
  for (let depth = 0; depth < 3; depth++) {
    const document = await archive.json(at);
    const index = indexSchema.safeParse(document);
    if (!index.success) {
      const manifest = manifestSchema.parse(document);
      const layers = manifest.layers.map(({ digest }) => blobName(digest));
      return { ...(await readConfig(archive, blobName(manifest.config.digest))), layers };
    }
    const { manifests } = index.data;
    const chosen = manifests.find(({ platform }) => isForHere(platform?.architecture)) ?? manifests[0];
    if (!chosen) throw refused("its index is empty");
    at = blobName(chosen.digest);
  }
  throw refused("its index is nested too deeply");
}

const blobName = (digest: string): string => `blobs/${digest.replace(":", "/")}`;

async function readConfig(archive: Archive, name: string): Promise<Omit<Description, "layers">> {
  const bytes = await archive.bytes(name);
  const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  return { digest, config: parseConfig(bytes), configName: name };
}

export interface Archive {
  /** The file to read: uncompressed, even when the uploaded one was compressed. */
  path: string;
  has(name: string): boolean;
  find(name: string): ArchiveFile;
  bytes(name: string): Promise<Buffer>;
  json(name: string): Promise<unknown>;
}

const PLAIN_NAME = "archive.tar";

/** Lists every entry once; contents are then read at their offsets. */
export async function openArchive(
  { unpack }: Pick<Loader, "unpack">,
  tarPath: string,
  target: string,
  bytesMax: number,
  options: CallOptions,
): Promise<Archive> {
  await mkdir(target);
  const work = { kind: "index", plainName: PLAIN_NAME, bytesMax, filesMax: FILES_MAX } as const;
  const { files, plain } = await unpack({ work, archive: tarPath, target }, options);
  const path = plain ? join(target, PLAIN_NAME) : tarPath;
  const byName = new Map(files.map((file) => [file.name, file]));
  const find = (name: string): ArchiveFile => {
    const named = byName.get(name);
    const file = named?.link === undefined ? named : byName.get(named.link);
    if (!file || file.link !== undefined) throw refused(`it lacks ${name.slice(0, 100)}`);
    return file;
  };
  const bytes = async (name: string): Promise<Buffer> => {
    const { start, size } = find(name);
    if (size > JSON_BYTES_MAX) throw refused(`${name.slice(0, 100)} is too large`);
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      return (await file.read(Buffer.alloc(size), 0, size, start)).buffer;
    } finally {
      await file.close();
    }
  };
  return {
    path,
    has: (name) => byName.get(name)?.link === undefined && byName.has(name),
    find,
    bytes,
    json: async (name) => parseJson(await bytes(name)),
  };
}
