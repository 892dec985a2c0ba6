/**
 * The images of one machine. A name leads to a manifest file, a manifest to layers; layers are folders named by the
 * digest of their content and shared by all images. The base image needs none of this: it consists of the machine's own
 * files.
 */
import { createHash, randomBytes } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { Image } from "../../../capabilities/images.ts";
import { BASE_NAMES, baseEnv } from "../../../images/base-names.ts";
import { Serial } from "../../common/serial.ts";
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
  /**
   * Manifests by name, null for an unknown name. A cache: every create reads one, and only this process writes them.
   */
  known: Map<string, Manifest | null>;
  /** Layers of images that are being assembled, with the number of those images: no manifest names them yet. */
  held: Map<string, number>;
  /** One unpacking at a time for each layer. */
  layerTurns: Serial;
}

/** Content of a loaded image's manifest file. */
export interface Manifest extends Image {
  /** Digests, topmost first. */
  layers: string[];
  /** Of an image from a registry. */
  remote?: Remote;
  /** The layers lie on the base image of this machine, as it is at each start. */
  onBase?: true;
}

/** Where an image came from. Its layers may be used again for an image of the same repository. */
export interface Remote {
  /** `docker.io/library/python`: whoever may read the image there has its layers. */
  repositories: string[];
  /** Digests of the layers as a registry keeps them, lowest first. */
  blobs: string[];
  /** Digests of the documents; absent for an image from before documents were kept. */
  manifest?: string;
  config?: string;
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

export function openImageStore({ dir, brand, nodeBinary, resolvConf }: ImageStoreOptions): ImageStore {
  for (const name of ["base", "blobs", "documents", "layers", "names", "notes"])
    mkdirSync(join(dir, name), { recursive: true });
  const base = openBaseImage({ dir: join(dir, "base"), brand, ...(nodeBinary ? { nodeBinary } : {}) });
  const skeleton = openSkeleton(join(dir, "skeleton"), resolvConf);
  const loader = openLoaderLayer(join(dir, "loader"));
  return {
    dir,
    brand,
    base,
    skeleton,
    loader,
    createdAt: new Date().toISOString(),
    known: new Map(),
    held: new Map(),
    layerTurns: new Serial(),
  };
}

export function resolveImage(store: ImageStore, name: string): ResolvedImage | null {
  const wanted = normalise(name);
  const loaded = readManifest(store, wanted);
  if (loaded) {
    const layers = loaded.layers.map((digest) => layerDir(store, digest));
    if (loaded.onBase) return { ...imageOf(loaded), parts: withSkeleton(store, partsOnBase(store, layers)) };
    const lowers = store.loader ? [...layers, store.loader] : layers;
    return { ...imageOf(loaded), parts: withSkeleton(store, [{ at: "/", lowers }]) };
  }
  if (baseEnv(wanted, store.brand) === null) return null;
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

/** Every image that was loaded or pulled. */
export const listManifests = (store: ImageStore): Manifest[] =>
  readdirSync(join(store.dir, "names")).flatMap(
    (file) => readManifest(store, decodeURIComponent(file.replace(/\.json$/, ""))) ?? [],
  );

export const findManifest = (store: ImageStore, name: string): Manifest | null => readManifest(store, normalise(name));

export function listImages(store: ImageStore): Image[] {
  const loaded = listManifests(store).map(imageOf);
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

/** Removes an image and the layers that neither another image nor a running workload uses. */
export async function removeImage(store: ImageStore, name: string, layersInUse: ReadonlySet<string>): Promise<boolean> {
  const whole = normalise(name);
  const file = manifestFile(store, whole);
  if (!existsSync(file)) return false;
  rmSync(file);
  store.known.delete(whole);
  await removeUnused(store, layersInUse);
  return true;
}

export async function removeUnused(store: ImageStore, layersInUse: ReadonlySet<string>): Promise<void> {
  const kept = new Set(layersInUse);
  const named = listManifests(store).flatMap(({ layers }) => layers);
  for (const digest of [...named, ...store.held.keys()]) kept.add(layerDir(store, digest));
  const gone: string[] = [];
  for (const each of readdirSync(join(store.dir, "layers"))) {
    const dir = join(store.dir, "layers", each);
    if (kept.has(dir)) continue;
    const place = unfinished(store, "gone");
    renameSync(dir, place); // a rename is atomic: a layer is there whole or not at all
    rmSync(join(store.dir, "notes", `${each}.json`), { force: true });
    gone.push(place);
  }
  removeParts(store);
  for (const place of gone) await removeTree(place);
}

/** Removes the documents and layers of registries that no image names. */
function removeParts(store: ImageStore): void {
  const kept = new Set([...listManifests(store).flatMap(partFiles), ...[...store.held.keys()].map(partName)]);
  for (const folder of ["documents", "blobs"])
    for (const name of readdirSync(join(store.dir, folder)))
      if (!kept.has(name.replace(/\.new$/, ""))) rmSync(join(store.dir, folder, name), { force: true });
}

/** Name of the file with a document, or with a layer as its registry sent it. */
export const partName = (digest: string): string => digest.replace(":", "-");

const partFiles = ({ remote }: Manifest): string[] =>
  [remote?.manifest, remote?.config, ...(remote?.blobs ?? [])].flatMap((digest) => (digest ? [partName(digest)] : []));

/** A temporary folder for a load or a removal. */
export const unfinished = (store: ImageStore, why: string): string =>
  join(store.dir, `.${why}-${randomBytes(6).toString("hex")}`);

/**
 * Removes temporary folders of a server that ended meanwhile, layers of removed images that were in use at the time,
 * and base images from before the machine's programs changed.
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

/** A layer's files depend on the layers below, so its id is a digest over all of them. */
export const chained = (below: string | undefined, digest: string): string =>
  below === undefined ? digest : `sha256:${createHash("sha256").update(`${below} ${digest}`).digest("hex")}`;

const notesFile = (store: ImageStore, digest: string): string =>
  join(store.dir, "notes", `${digest.replace(":", "-")}.json`);

/** What is known of an unpacked layer beside its files. */
export interface KeptNotes {
  /** Its folders that hide those below, for layers that are unpacked on top of it later. */
  opaque: string[];
  sizeBytes: number;
  /** Digests of files, as registries keep them, that were seen to unpack to this layer. */
  blobs: string[];
  /** The layer as the tar that is made of its files; absent until somebody needs it. */
  tar?: { digest: string; sizeBytes: number };
}

/** Moves a layer into place. When two images bring the same layer, the first copy stays. */
export function keepLayer(store: ImageStore, digest: string, from: string, notes: KeptNotes): void {
  const to = layerDir(store, digest);
  const known = layerNotes(store, digest);
  const blobs = [...new Set([...(known?.blobs ?? []), ...notes.blobs])];
  // The tar is made of the files that stay.
  writeNotes(store, digest, { ...notes, blobs, ...(known?.tar ? { tar: known.tar } : {}) });
  if (!existsSync(to)) renameSync(from, to);
}

export function noteTar(store: ImageStore, digest: string, tar: NonNullable<KeptNotes["tar"]>): void {
  const known = layerNotes(store, digest);
  if (known) writeNotes(store, digest, { ...known, tar });
}

function writeNotes(store: ImageStore, digest: string, notes: KeptNotes): void {
  writeFileSync(`${notesFile(store, digest)}.new`, JSON.stringify(notes));
  renameSync(`${notesFile(store, digest)}.new`, notesFile(store, digest));
}

/** Null when the layer is not here, or was unpacked by a version that kept no notes. */
export function layerNotes(store: ImageStore, digest: string): KeptNotes | null {
  const file = notesFile(store, digest);
  if (!existsSync(layerDir(store, digest)) || !existsSync(file)) return null;
  return JSON.parse(readFileSync(file, "utf8")) as KeptNotes;
}

/** `name` means `name:latest`. */
const normalise = (name: string): string => (/:[^/]*$/.test(name) ? name : `${name}:latest`);

/** Longest file name; no valid image name is longer. */
const NAME_BYTES_MAX = 200;

const manifestFile = (store: ImageStore, name: string): string =>
  join(store.dir, "names", `${encodeURIComponent(name).slice(0, NAME_BYTES_MAX)}.json`);

/** Size of the manifest cache: tenants may ask for any name. */
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

function baseRecord({ base, brand, createdAt }: ImageStore, name: string): Image {
  const { digest, env, workDir } = base;
  return { name, digest, sizeBytes: 0, env: { ...env, ...baseEnv(name, brand) }, workDir, argv: [], createdAt };
}

/** The base image is several overlays; the folders of a layer that belong to each lie on top of it. */
const partsOnBase = ({ base }: ImageStore, layers: readonly string[]): RootPart[] =>
  base.parts.map(({ at, lowers }) => ({
    at,
    lowers: [...layers.map((layer) => join(layer, at)).filter(isFolder), ...lowers],
  }));

/** The folders of the base image that lie below the layers of an image on it. */
export const baseFolders = ({ base }: ImageStore): string[] => base.parts.find(({ at }) => at === "/")?.lowers ?? [];

/** Whether no link or file of the layer is where an overlay of the base image is mounted. */
export const fitsBase = ({ base }: ImageStore, layer: string): boolean =>
  base.parts.every(({ at }) => {
    let path = layer;
    for (const name of at.split("/").filter(Boolean)) {
      path = join(path, name);
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (!stat) return true;
      if (!stat.isDirectory()) return false;
    }
    return true;
  });

/** A link in a layer is never followed. */
const isFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

function imageOf({ layers: _, remote: __, onBase: ___, ...image }: Manifest): Image {
  return image;
}

/**
 * The smallest root that the platform's own executable runs on: only its libraries, or the base image without a loader
 * layer.
 */
export const programRoot = (store: ImageStore): RootPart[] =>
  withSkeleton(store, store.loader ? [{ at: "/", lowers: [store.loader] }] : store.base.parts);

const withSkeleton = ({ skeleton }: ImageStore, parts: RootPart[]): RootPart[] =>
  parts.map((part) => (part.at === "/" ? { ...part, lowers: [skeleton, ...part.lowers] } : part));
