/**
 * Loads images from files: the output of `docker save`, and OCI image layouts in a tar. Needs neither a registry nor
 * Docker. The archive is untrusted: every size is bounded, and every layer is addressed by the digest of its actual
 * content.
 */

import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, mkdir, open, rename, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { PlatformError } from "../../../../contract/errors.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { ArchiveFile, Budget } from "../../../../unpack/job.ts";
import type { Image, ImageUser } from "../../../capabilities/images.ts";
import type { CallOptions } from "../../../dial/endpoint.ts";
import type { Spawner } from "../calls/spawner.ts";
import type { Unpack } from "../unpack/cage.ts";
import { writeMarks } from "../unpack/marks.ts";
import type { Identity } from "../workload/launch-program.ts";
import { imageUser } from "./image-user.ts";
import { type ImageStore, layerDir, saveManifest, unfinished } from "./images.ts";

/** Largest unpacked image. The largest images in common use (with graphics libraries) have 15 GB. */
const IMAGE_BYTES_MAX = 32 * 1024 ** 3;
/** Largest ratio of unpacked to packed bytes. Programs compress to a third, text to a tenth; more is a zip bomb. */
const EXPANSION_MAX = 50;
const EXPANSION_FREE_BYTES = 64 * 1024 ** 2;
const IMAGE_ENTRIES_MAX = 2_000_000;
/** Bytes of tar headers per file, with padding. */
const HEADERS_BYTES = 2048;
/** Most files in an archive: each layer, and a few small files beside it. */
const FILES_MAX = 10_000;
const LAYERS_MAX = 128; // as many as image tools make; an overlay allows 500
/** The architecture's name in images. */
const ARCHITECTURE = process.arch === "x64" ? "amd64" : process.arch;
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
    const bytesMax = await unpackedMax(tarPath, temp);
    const archive = await openArchive(loader, tarPath, join(temp, "plain"), bytesMax, options);
    const source = await describe(archive);
    const { architecture } = source.config;
    if (architecture && architecture !== ARCHITECTURE)
      throw refused(`it is for ${architecture.slice(0, 50)}, this machine is ${ARCHITECTURE}`);
    const { layers, sizeBytes } = await unpackLayers(loader, archive, source, join(temp, "layers"), bytesMax, options);
    const { config } = source.config;
    const user = userOf(
      config?.User ?? "",
      layers.map(({ dir }) => dir),
    );
    for (const { dir, digest } of layers) await keep(dir, layerDir(store, digest));
    return saveManifest(store, {
      name,
      digest: source.digest,
      sizeBytes,
      env: environmentOf(config?.Env ?? []),
      workDir: config?.WorkingDir || "/",
      argv: [...(config?.Entrypoint ?? []), ...(config?.Cmd ?? [])],
      ...(user ? { user } : {}),
      createdAt: new Date().toISOString(),
      layers: layers.map(({ digest }) => digest),
    });
  } catch (error) {
    throw error instanceof PlatformError || options.signal?.aborted ? error : refused("it cannot be read", error);
  } finally {
    await removeTree(temp);
  }
}

interface LoadedLayers {
  /** Topmost first. */
  layers: { dir: string; digest: string }[];
  sizeBytes: number;
}

async function unpackLayers(
  { unpack, spawner, identity }: Loader,
  archive: Archive,
  source: Description,
  target: string,
  bytesMax: number,
  options: CallOptions,
): Promise<LoadedLayers> {
  await mkdir(target);
  const budget: Budget = {
    bytes: bytesMax,
    entries: IMAGE_ENTRIES_MAX,
    readBytes: bytesMax + IMAGE_ENTRIES_MAX * HEADERS_BYTES,
  };
  const wanted = source.layers.map((file, index) => {
    const { start, size } = archive.find(file);
    return { name: `layer-${index}`, start, size };
  });
  const owners = process.getuid?.() === 0 && identity.kind !== "user";
  const work = { kind: "layers", layers: wanted, budget, owners } as const;
  const answer = await unpack({ work, archive: archive.path, target }, options);
  const made: LoadedLayers = { layers: [], sizeBytes: 0 };
  for (const [index, layer] of answer.layers.entries()) {
    const expected = source.config.rootfs?.diff_ids?.[index];
    if (expected !== undefined && expected !== layer.digest) throw refused("a layer's content has another digest");
    const dir = join(target, `layer-${index}`);
    // The job is not trusted: a link in place of the folder would be followed when it is mounted.
    if (!(await lstat(dir)).isDirectory()) throw new Error("an unpacked layer is not a folder");
    await writeMarks(spawner, dir, layer, identity);
    made.sizeBytes += layer.sizeBytes;
    made.layers.unshift({ dir, digest: chained(made.layers[0]?.digest, layer.digest) });
  }
  return made;
}

/** A layer's files depend on the layers below, so its id is a digest over all of them. */
const chained = (below: string | undefined, digest: string): string =>
  below === undefined ? digest : `sha256:${createHash("sha256").update(`${below} ${digest}`).digest("hex")}`;

async function unpackedMax(tarPath: string, folder: string): Promise<number> {
  const [{ size }, { bavail, bsize }] = [await stat(tarPath), await statfs(folder)];
  return Math.min(IMAGE_BYTES_MAX, size * EXPANSION_MAX + EXPANSION_FREE_BYTES, bavail * bsize - DISK_RESERVE_BYTES);
}

/** Free space that a load leaves to the workloads on this disk. */
const DISK_RESERVE_BYTES = 512 * 1024 ** 2;

const configSchema = z.object({
  config: z
    .object({
      Env: z.array(z.string()).max(10_000).nullish(),
      WorkingDir: z.string().nullish(),
      Entrypoint: z.array(z.string()).nullish(),
      Cmd: z.array(z.string()).nullish(),
      User: z.string().nullish(),
    })
    .nullish(),
  architecture: z.string().nullish(),
  rootfs: z.object({ diff_ids: z.array(z.string()).nullish() }).nullish(),
});
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
  config: z.infer<typeof configSchema>;
  /** Names in the archive, lowest first. */
  layers: string[];
}

async function describe(archive: Archive): Promise<Description> {
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
    const chosen = manifests.find(({ platform }) => platform?.architecture === ARCHITECTURE) ?? manifests[0];
    if (!chosen) throw refused("its index is empty");
    at = blobName(chosen.digest);
  }
  throw refused("its index is nested too deeply");
}

const blobName = (digest: string): string => `blobs/${digest.replace(":", "/")}`;

async function readConfig(archive: Archive, name: string): Promise<Omit<Description, "layers">> {
  const bytes = await archive.bytes(name);
  const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  return { digest, config: configSchema.parse(parseJson(bytes)) };
}

function environmentOf(lines: string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const line of lines) {
    const equals = line.indexOf("=");
    if (equals > 0 && !line.includes("\0")) env[line.slice(0, equals)] = line.slice(equals + 1);
  }
  return env;
}

function userOf(spec: string, layers: string[]): ImageUser | undefined {
  try {
    return imageUser(spec, layers);
  } catch (error) {
    throw refused(error instanceof Error ? error.message : String(error));
  }
}

/** Moves a layer into place. When two images bring the same layer, the first copy stays. */
async function keep(from: string, to: string): Promise<void> {
  if (await stat(to).catch(() => null)) return;
  await rename(from, to);
}

interface Archive {
  /** The file to read: uncompressed, even when the uploaded one was compressed. */
  path: string;
  has(name: string): boolean;
  find(name: string): ArchiveFile;
  bytes(name: string): Promise<Buffer>;
  json(name: string): Promise<unknown>;
}

const PLAIN_NAME = "archive.tar";

/** Lists every entry once; contents are then read at their offsets. */
async function openArchive(
  { unpack }: Loader,
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

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw refused("its description is not JSON", error);
  }
}

const refused = (reason: string, cause?: unknown): PlatformError =>
  new PlatformError("bad_request", `The image is refused: ${reason}.`, cause === undefined ? {} : { cause });
