/**
 * The images of one machine. A name leads to a manifest file, a manifest to layers; layers are folders named by the
 * digest of their content and shared by all images. The base image needs none of this: it is the machine itself.
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { Image } from "../../../driver.ts";
import type { RootPart } from "../workload/launch-program.ts";
import { type BaseImage, openBaseImage, openSkeleton } from "./base-image.ts";
import { openLoaderLayer } from "./loader-layer.ts";

export interface ImageStore {
  dir: string;
  brand: string;
  base: BaseImage;
  skeleton: string;
  loader: string | null;
  createdAt: string;
  /** What was read of names, null where there is nothing: every create asks, and only this process writes. */
  known: Map<string, Manifest | null>;
}

/** What a loaded image's manifest file says. */
export interface Manifest extends Image {
  /** Digests, topmost first. */
  layers: string[];
}

/** An image as a launch needs it. */
export interface ResolvedImage extends Image {
  parts: RootPart[];
}

export interface ImageStoreOptions {
  dir: string;
  brand: string;
  nodeBinary?: string;
  resolvConf: string;
}

/** Names under which the base image is known, with either word before the slash, or none. */
const BASE_NAMES = ["base-image", "node", "py-app", "ts-app"];

export function openImageStore({ dir, brand, nodeBinary, resolvConf }: ImageStoreOptions): ImageStore {
  for (const name of ["base", "layers", "names"]) mkdirSync(join(dir, name), { recursive: true });
  const base = openBaseImage({ dir: join(dir, "base"), brand, ...(nodeBinary ? { nodeBinary } : {}) });
  const skeleton = openSkeleton(join(dir, "skeleton"), resolvConf);
  const loader = openLoaderLayer(join(dir, "loader"));
  return { dir, brand, base, skeleton, loader, createdAt: new Date().toISOString(), known: new Map() };
}

export function resolveImage(store: ImageStore, name: string): ResolvedImage | null {
  const wanted = normalise(name);
  const loaded = readManifest(store, wanted);
  if (loaded) {
    const layers = loaded.layers.map((digest) => layerDir(store, digest));
    const lowers = store.loader ? [...layers, store.loader] : layers;
    return { ...imageOf(loaded), parts: withSkeleton(store, [{ at: "/", lowers }]) };
  }
  if (!isBase(store, wanted)) return null;
  return { ...baseRecord(store, wanted), parts: withSkeleton(store, store.base.parts) };
}

export function findImage(store: ImageStore, name: string): Image | null {
  const image = resolveImage(store, name);
  if (!image) return null;
  const { parts: _, ...shown } = image;
  return shown;
}

export async function imageBytes(store: ImageStore, name: string): Promise<number | null> {
  const image = resolveImage(store, name);
  return image?.digest === store.base.digest ? store.base.bytes() : (image?.sizeBytes ?? null);
}

export function listImages(store: ImageStore): Image[] {
  const loaded = readdirSync(join(store.dir, "names")).flatMap((file) => {
    const manifest = readManifest(store, decodeURIComponent(file.replace(/\.json$/, "")));
    return manifest ? [imageOf(manifest)] : [];
  });
  return [...BASE_NAMES.map((name) => baseRecord(store, `${store.brand}/${name}:latest`)), ...loaded];
}

export function saveManifest(store: ImageStore, manifest: Manifest): Image {
  const name = normalise(manifest.name);
  const file = manifestFile(store, name);
  writeFileSync(`${file}.new`, JSON.stringify({ ...manifest, name }));
  renameSync(`${file}.new`, file);
  store.known.delete(name);
  return { ...imageOf(manifest), name };
}

/** Layers that no other image uses go with it, except those a running workload stands on. */
export async function removeImage(store: ImageStore, name: string, layersInUse: ReadonlySet<string>): Promise<boolean> {
  const file = manifestFile(store, normalise(name));
  if (!existsSync(file)) return false;
  rmSync(file);
  store.known.clear();
  await removeUnused(store, layersInUse);
  return true;
}

async function removeUnused(store: ImageStore, layersInUse: ReadonlySet<string>): Promise<void> {
  const kept = new Set(layersInUse);
  for (const each of readdirSync(join(store.dir, "names"))) {
    const manifest = readManifest(store, decodeURIComponent(each.replace(/\.json$/, "")));
    for (const digest of manifest?.layers ?? []) kept.add(layerDir(store, digest));
  }
  const gone: string[] = [];
  for (const each of readdirSync(join(store.dir, "layers"))) {
    const dir = join(store.dir, "layers", each);
    if (kept.has(dir)) continue;
    const place = unfinished(store, "gone");
    renameSync(dir, place); // at once: a layer is there as a whole or not at all
    gone.push(place);
  }
  for (const place of gone) await removeTree(place);
}

/** A folder for what is being loaded or removed. */
export const unfinished = (store: ImageStore, why: string): string =>
  join(store.dir, `.${why}-${randomBytes(6).toString("hex")}`);

/**
 * What a server left behind that ended meanwhile, layers of removed images that something still stood on then, and base
 * images from before the machine's programs changed.
 */
export async function sweepImages(store: ImageStore, layersInUse: ReadonlySet<string>): Promise<void> {
  for (const name of readdirSync(store.dir)) if (name.startsWith(".")) await removeTree(join(store.dir, name));
  await removeUnused(store, layersInUse);
  const kept = [...layersInUse, ...store.base.parts.flatMap(({ lowers }) => lowers)];
  for (const name of readdirSync(join(store.dir, "base"))) {
    const dir = join(store.dir, "base", name);
    if (!kept.some((layer) => layer.startsWith(`${dir}/`))) await removeTree(dir);
  }
}

export const layerDir = (store: ImageStore, digest: string): string =>
  join(store.dir, "layers", digest.replace(":", "-"));

/** `name` means `name:latest`. */
const normalise = (name: string): string => (/:[^/]*$/.test(name) ? name : `${name}:latest`);

/** A longer name is nobody's; it would also not fit into a file name. */
const NAME_BYTES_MAX = 200;

const manifestFile = (store: ImageStore, name: string): string =>
  join(store.dir, "names", `${encodeURIComponent(name).slice(0, NAME_BYTES_MAX)}.json`);

/** Tenants may ask for any name. */
const KNOWN_MAX = 1000;

function readManifest(store: ImageStore, name: string): Manifest | null {
  const known = store.known.get(name);
  if (known !== undefined) return known;
  const file = manifestFile(store, name);
  const found = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Manifest) : null;
  const manifest = found?.name === name ? found : null;
  if (store.known.size >= KNOWN_MAX) store.known.clear();
  store.known.set(name, manifest);
  return manifest;
}

function isBase({ brand }: ImageStore, name: string): boolean {
  const match = /^(?:([^/]+)\/)?([^/:]+):latest$/.exec(name);
  if (!match?.[2] || !BASE_NAMES.includes(match[2])) return false;
  return match[1] === undefined || match[1] === brand || match[1] === "service";
}

function baseRecord({ base, createdAt }: ImageStore, name: string): Image {
  const { digest, env, workDir } = base;
  return { name, digest, sizeBytes: 0, env, workDir, argv: [], createdAt };
}

function imageOf({ layers: _, ...image }: Manifest): Image {
  return image;
}

/** The least that the platform's own executable runs on: nothing but its libraries, where the machine has them apart. */
export const programRoot = (store: ImageStore): RootPart[] =>
  withSkeleton(store, store.loader ? [{ at: "/", lowers: [store.loader] }] : store.base.parts);

const withSkeleton = ({ skeleton }: ImageStore, parts: RootPart[]): RootPart[] =>
  parts.map((part) => (part.at === "/" ? { ...part, lowers: [skeleton, ...part.lowers] } : part));
