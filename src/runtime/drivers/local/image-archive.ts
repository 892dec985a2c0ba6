/**
 * Takes in images as files: what `docker save` writes, and OCI image layouts in a tar. No registry and no Docker is
 * needed. The archive is hostile: every size is bounded, every layer is addressed by the digest of what it really holds.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { mkdir, open, rename, stat, statfs } from "node:fs/promises";
import { join, posix } from "node:path";
import type { Readable } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { z } from "zod";
import { readTar } from "../../../blobs/tar-reader.ts";
import { PlatformError } from "../../../contract/errors.ts";
import { removeTree } from "../../../lib/remove-tree.ts";
import type { CallOptions, Image, ImageUser } from "../../driver.ts";
import { imageUser } from "./image-user.ts";
import { type ImageStore, layerDir, saveManifest, unfinished } from "./images.ts";
import { type Budget, unpackLayer } from "./layer.ts";
import type { Spawner } from "./spawner.ts";

/** Unpacked; the largest images in common use (with graphics libraries) have 15 GB. */
const IMAGE_BYTES_MAX = 32 * 1024 ** 3;
/** Programs compress to a third, text to a tenth; what grows beyond this is made to fill the disk. */
const EXPANSION_MAX = 50;
const EXPANSION_FREE_BYTES = 64 * 1024 ** 2;
const IMAGE_ENTRIES_MAX = 2_000_000;
/** What an archive says about one file, with its padding. */
const HEADERS_BYTES = 2048;
/** Beside each layer an archive has a few small files. */
const FILES_MAX = 10_000;
const LAYERS_MAX = 128; // as many as image tools make; an overlay takes 500
/** As images call it. */
const ARCHITECTURE = process.arch === "x64" ? "amd64" : process.arch;
/** Manifests and configurations are a few kilobytes. */
const JSON_BYTES_MAX = 8 * 1024 * 1024;

export async function loadImage(
  store: ImageStore,
  spawner: Spawner,
  tarPath: string,
  name: string,
  options: CallOptions = {},
): Promise<Image> {
  const temp = unfinished(store, "load");
  await mkdir(temp, { recursive: true });
  try {
    const bytesMax = await unpackedMax(tarPath, temp);
    const archive = await openArchive(tarPath, temp, bytesMax);
    const source = await describe(archive);
    const { architecture } = source.config;
    if (architecture && architecture !== ARCHITECTURE)
      throw refused(`it is for ${architecture.slice(0, 50)}, this machine is ${ARCHITECTURE}`);
    const budget: Budget = {
      bytes: bytesMax,
      entries: IMAGE_ENTRIES_MAX,
      readBytes: bytesMax + IMAGE_ENTRIES_MAX * HEADERS_BYTES,
    };
    const layers: { dir: string; digest: string }[] = [];
    let sizeBytes = 0;
    for (const [index, file] of source.layers.entries()) {
      const place = { dir: join(temp, `layer-${index}`), lowers: layers.map(({ dir }) => dir) };
      const unpacked = await unpackLayer(spawner, await decompressed(archive.read(file)), place, budget, options);
      const expected = source.config.rootfs?.diff_ids?.[index];
      if (expected !== undefined && expected !== unpacked.digest) throw refused("a layer's content has another digest");
      sizeBytes += unpacked.sizeBytes;
      layers.unshift({ dir: place.dir, digest: chained(layers[0]?.digest, unpacked.digest) });
    }
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

/** A layer's files depend on those it lies on, so it is known by all of them. */
const chained = (below: string | undefined, digest: string): string =>
  below === undefined ? digest : `sha256:${createHash("sha256").update(`${below} ${digest}`).digest("hex")}`;

async function unpackedMax(tarPath: string, folder: string): Promise<number> {
  const [{ size }, { bavail, bsize }] = [await stat(tarPath), await statfs(folder)];
  return Math.min(IMAGE_BYTES_MAX, size * EXPANSION_MAX + EXPANSION_FREE_BYTES, bavail * bsize - DISK_RESERVE_BYTES);
}

/** What runs on this disk needs some of it. */
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

/** Two images may bring the same layer; the first one stays. */
async function keep(from: string, to: string): Promise<void> {
  if (await stat(to).catch(() => null)) return;
  await rename(from, to);
}

interface Archive {
  has(name: string): boolean;
  read(name: string): Readable;
  bytes(name: string): Promise<Buffer>;
  json(name: string): Promise<unknown>;
}

/** Finds every entry once; contents are then read where they lie. */
async function openArchive(tarPath: string, temp: string, bytesMax: number): Promise<Archive> {
  const path = await plainArchive(tarPath, temp, bytesMax);
  const places = new Map<string, { start: number; size: number }>();
  const links = new Map<string, string>();
  for await (const entry of readTar(createReadStream(path))) {
    const name = archiveName(entry.path);
    if (entry.type === "file") places.set(name, { start: entry.offset, size: entry.size });
    else if (entry.type === "symlink") links.set(name, posix.join(posix.dirname(name), entry.linkPath));
    else if (entry.type === "link") links.set(name, archiveName(entry.linkPath));
    if (places.size + links.size > FILES_MAX) throw refused("it holds too many files");
  }
  const placeOf = (name: string): { start: number; size: number } => {
    const place = places.get(name) ?? places.get(links.get(name) ?? "");
    if (!place) throw refused(`it lacks ${name.slice(0, 100)}`);
    return place;
  };
  const bytes = async (name: string): Promise<Buffer> => {
    const { start, size } = placeOf(name);
    if (size > JSON_BYTES_MAX) throw refused(`${name.slice(0, 100)} is too large`);
    const file = await open(path, "r");
    try {
      return (await file.read(Buffer.alloc(size), 0, size, start)).buffer;
    } finally {
      await file.close();
    }
  };
  return {
    has: (name) => places.has(name),
    read: (name) => {
      const { start, size } = placeOf(name);
      return createReadStream(path, { start, end: start + size - 1 });
    },
    bytes,
    json: async (name) => parseJson(await bytes(name)),
  };
}

const archiveName = (path: string): string => posix.normalize(path).replace(/^\.?\/+/, "");

/** Whole archives come compressed too; those are unpacked once, to be read in any order. */
async function plainArchive(tarPath: string, temp: string, bytesMax: number): Promise<string> {
  const source = createReadStream(tarPath);
  const plain = await decompressed(source);
  if (plain === source) {
    source.destroy();
    return tarPath;
  }
  const path = join(temp, "archive.tar");
  let left = bytesMax;
  const file = await open(path, "wx", 0o600);
  try {
    for await (const chunk of plain) {
      left -= chunk.length;
      if (left < 0) throw refused("it is larger than an image may be");
      await file.write(chunk);
    }
  } finally {
    await file.close();
  }
  return path;
}

/** The same stream when it is not compressed. */
async function decompressed(source: Readable): Promise<AsyncIterable<Buffer>> {
  const head = await firstBytes(source);
  const expander = head.startsWith("1f8b") ? createGunzip() : head === "28b52ffd" ? createZstdDecompress() : null;
  if (!expander) return source;
  source.once("error", (error) => expander.destroy(error));
  return source.pipe(expander);
}

async function firstBytes(source: Readable): Promise<string> {
  await once(source, "readable");
  const head: Buffer = source.read() ?? Buffer.alloc(0);
  source.unshift(head);
  return head.toString("hex", 0, 4);
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
