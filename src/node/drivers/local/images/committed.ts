/**
 * Images that are made on this machine: the files that a workload wrote become a layer, with the marks that the kernel
 * made for removed files. They are moved as they lie, or copied out of the workload's disk. The files are untrusted: no
 * link in them is followed.
 */
import { createHash, randomBytes } from "node:crypto";
import { lstatSync, readdirSync, renameSync, rmdirSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { Image, ImageDocument } from "../../../capabilities/images.ts";
import { AWAKE_FIFO } from "../../common/daemon-config.ts";
import type { CopyTree } from "../storage/tree-copy.ts";
import { folderBytes } from "../storage/volumes.ts";
import type { WorkloadRecord } from "../workload/record.ts";
import { makeFolder } from "./base-image.ts";
import { runningOf } from "./image-config.ts";
import {
  baseFolders,
  chained,
  findManifest,
  type ImageStore,
  keepLayer,
  layerDir,
  layerNotes,
  type Manifest,
  resolveImage,
  saveManifest,
  unfinished,
} from "./images.ts";

/** As many as images of registries have. */
const LAYERS_MAX = 128;

type Files = Pick<Manifest, "layers" | "onBase">;

export function deriveImage(store: ImageStore, name: string, from: string | null, document: ImageDocument): Image {
  return keepImage(store, name, from === null ? { layers: [] } : filesOf(store, from), document);
}

/** How the files on the disk of a workload are reached. */
export interface DiskAccess {
  /** Shows the disk at `fs` of the workload's folder until `release`. */
  expose(dir: string): Promise<{ release: () => Promise<void> }>;
  copyTree: CopyTree;
}

/** `dir`: the folder of an ended workload. */
export async function commitWorkload(
  { store, disks }: { store: ImageStore; disks: DiskAccess },
  { dir, record }: { dir: string; record: Pick<WorkloadRecord, "image" | "parts" | "disk"> },
  name: string,
  document: ImageDocument,
  mountPoints: readonly string[],
): Promise<Image> {
  const below = filesOf(store, record.image);
  if (below.layers.length >= LAYERS_MAX)
    throw new PlatformError("bad_request", `An image has at most ${LAYERS_MAX} layers.`);
  const { layer, sizeBytes } = record.disk
    ? await copiedFrom(dir, record.parts, mountPoints, unfinished(store, "commit"), disks)
    : await movable(dir, record.parts, mountPoints);
  // From here on nothing waits, so that no sweep finds a layer that no manifest names.
  const id = chained(below.layers[0], `sha256:${randomBytes(32).toString("hex")}`);
  keepLayer(store, id, layer, { opaque: [], sizeBytes, blobs: [] });
  return keepImage(store, name, { ...below, layers: [id, ...below.layers] }, document);
}

interface Written {
  /** Folder on the disk of the layer store. */
  layer: string;
  sizeBytes: number;
}

async function movable(dir: string, parts: WorkloadRecord["parts"], mountPoints: readonly string[]): Promise<Written> {
  const layer = written(dir, parts, mountPoints);
  return { layer, sizeBytes: await folderBytes(layer) };
}

async function copiedFrom(
  dir: string,
  parts: WorkloadRecord["parts"],
  mountPoints: readonly string[],
  layer: string,
  { expose, copyTree }: DiskAccess,
): Promise<Written> {
  const { release } = await expose(dir);
  try {
    return { layer, sizeBytes: await copyTree(written(dir, parts, mountPoints), layer) };
  } catch (error) {
    await removeTree(layer);
    throw error;
  } finally {
    await release();
  }
}

/** The folder with everything that the workload wrote, and nothing of the platform. */
function written(dir: string, parts: WorkloadRecord["parts"], mountPoints: readonly string[]): string {
  const upper = gather(dir, parts);
  removeFifo(upper, AWAKE_FIFO);
  for (const path of mountPoints) removeEmpty(upper, path);
  return upper;
}

/** The layers that an image consists of. */
function filesOf(store: ImageStore, name: string): Files {
  const manifest = findManifest(store, name);
  if (manifest) return { layers: manifest.layers, ...(manifest.onBase ? { onBase: true } : {}) };
  if (resolveImage(store, name) === null) throw new PlatformError("bad_request", `There is no image ${name}.`);
  return { layers: [], onBase: true };
}

function keepImage(store: ImageStore, name: string, files: Files, document: ImageDocument): Image {
  const dirs = files.layers.map((digest) => layerDir(store, digest));
  const base = files.onBase ? baseFolders(store) : [];
  const running = runningOf({ config: document }, [...dirs, ...base]);
  const digest = createHash("sha256").update(
    JSON.stringify([files.onBase ? store.base.digest : null, files.layers, document]),
  );
  return saveManifest(store, {
    name,
    digest: `sha256:${digest.digest("hex")}`,
    sizeBytes: files.layers.reduce((sum, layer) => sum + (layerNotes(store, layer)?.sizeBytes ?? 0), 0),
    ...running,
    createdAt: new Date().toISOString(),
    ...files,
  });
}

/**
 * Puts what was written to all overlays of a root into the first one: a layer is one tree. The mount point of an overlay
 * is never in the tree above it, because the mount hides that place from the workload.
 */
function gather(dir: string, parts: WorkloadRecord["parts"]): string {
  const upperOf = (index: number): string => join(dir, "fs", String(index), "upper");
  const [root] = parts;
  if (root?.at !== "/") throw new Error("the first part of a root is not the root");
  const upper = upperOf(0);
  // Outer folders first.
  const others = [...parts.entries()].slice(1).sort(([, a], [, b]) => a.at.length - b.at.length);
  for (const [index, { at }] of others) {
    if (readdirSync(upperOf(index)).length === 0) continue;
    const names = at.split("/").filter((name) => name !== "");
    const parents = names.slice(0, -1).map((_, depth) => join(upper, ...names.slice(0, depth + 1)));
    const strange = parents.find((path) => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === false);
    if (strange !== undefined || lstatSync(join(upper, at), { throwIfNoEntry: false }))
      throw new Error(`a workload wrote below the mount at ${at}`);
    if (parents.length > 0) makeFolder(upper, names.slice(0, -1).join("/"));
    renameSync(upperOf(index), join(upper, at));
  }
  return upper;
}

/** The daemon makes a FIFO in every workload; nothing else of the platform is in the files. */
function removeFifo(root: string, path: string): void {
  const place = join(root, path);
  if (!isFolderBelow(root, dirname(path)) || !lstatSync(place, { throwIfNoEntry: false })?.isFIFO()) return;
  unlinkSync(place);
  removeEmpty(root, dirname(path));
}

const placesOf = (root: string, path: string): string[] => {
  const names = path.split("/").filter((name) => name !== "");
  return names.map((_, depth) => join(root, ...names.slice(0, depth + 1)));
};

/** No link leads there. */
const isFolderBelow = (root: string, path: string): boolean =>
  placesOf(root, path).every((place) => lstatSync(place, { throwIfNoEntry: false })?.isDirectory());

/** Removes the folder and those above it, as long as they are empty and no link leads there. */
function removeEmpty(root: string, path: string): void {
  if (!isFolderBelow(root, path)) return;
  for (const place of placesOf(root, path).toReversed()) {
    if (readdirSync(place).length > 0) return;
    rmdirSync(place);
  }
}
