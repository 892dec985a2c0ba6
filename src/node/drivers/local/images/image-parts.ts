/**
 * Images as a registry sends them. The manifest and the configuration of an image are kept as documents. A layer that was
 * pulled is kept as the registry sent it; a layer that was made here is kept unpacked alone, and its tar is written anew
 * whenever somebody asks for it.
 */
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { constants, createReadStream, existsSync, linkSync, renameSync, statSync, writeFileSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, type Readable } from "node:stream";
import { promisify } from "node:util";
import { PlatformError } from "../../../../contract/errors.ts";
import { BASE_LABEL } from "../../../../contract/image-base.ts";
import { PLATFORM } from "../../../../registry/manifest.ts";
import type { AddressedImage, ImageDocument, ImagePart } from "../../../capabilities/images.ts";
import {
  findManifest,
  type ImageStore,
  layerDir,
  layerNotes,
  type Manifest,
  noteTar,
  partName,
  saveManifest,
} from "./images.ts";

const OCI = "application/vnd.oci.image";
const MANIFEST_TYPE = `${OCI}.manifest.v1+json`;
/** The value of the label: the layers lie on the base image of whatever machine runs them. */
const ON_MACHINE = "machine";

/** A layer as a tar. */
export interface LayerTar {
  digest: string;
  sizeBytes: number;
}

/** Writes unpacked layers as tars. */
export interface LayerPacker {
  describe(dir: string): Promise<LayerTar>;
  open(dir: string): Readable;
}

/** Most layers that are written at the same time: each is a process for as long as its reader takes. */
const WRITTEN_MAX = 32;

/** `program`: the executable of sandboxes. */
export function layerPacker(program: string): LayerPacker {
  let written = 0;
  return {
    async describe(dir) {
      const { stdout } = await promisify(execFile)(program, ["layer-tar", dir, "digest"], { env: {} });
      return JSON.parse(stdout) as LayerTar;
    },
    open(dir) {
      if (written >= WRITTEN_MAX)
        throw new PlatformError("too_many_requests", "Too many layers are read from this server. Try again later.");
      written += 1;
      const child = spawn(program, ["layer-tar", dir], { env: {}, stdio: ["ignore", "pipe", "ignore"] });
      const out = new PassThrough();
      child.stdout.pipe(out, { end: false });
      child.once("error", (error) => out.destroy(error));
      child.once("close", () => (written -= 1));
      child.once("close", (code) => (code === 0 ? out.end() : out.destroy(new Error("a layer could not be read"))));
      out.once("close", () => void child.kill("SIGKILL"));
      return out;
    },
  };
}

const documentFile = ({ dir }: ImageStore, digest: string): string => join(dir, "documents", partName(digest));
const blobFile = ({ dir }: ImageStore, digest: string): string => join(dir, "blobs", partName(digest));
const sha256 = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

/** Keeps a manifest or a configuration; returns its digest. */
export function keepDocument(store: ImageStore, bytes: Buffer): string {
  const digest = sha256(bytes);
  const file = documentFile(store, digest);
  writeFileSync(`${file}.new`, bytes);
  renameSync(`${file}.new`, file);
  return digest;
}

/** Keeps a layer as its registry sent it. The file has this digest; the caller may remove it afterwards. */
export async function keepBlob(store: ImageStore, digest: string, file: string): Promise<void> {
  const place = blobFile(store, digest);
  if (existsSync(place)) return;
  try {
    linkSync(file, place);
  } catch {
    // On another file system, or one without hard links.
    await copyFile(file, `${place}.new`, constants.COPYFILE_FICLONE);
    renameSync(`${place}.new`, place);
  }
}

export const isOnBase = (document: ImageDocument | null | undefined): boolean =>
  document?.Labels?.[BASE_LABEL] === ON_MACHINE;

/** Keeps an image that was made here under the name that belongs to its manifest. */
export async function addManifestTo(
  { store, packer }: { store: ImageStore; packer: LayerPacker },
  name: string,
  nameFor: (digest: string) => string,
): Promise<AddressedImage> {
  const image = findManifest(store, name);
  if (!image) throw new Error(`there is no image ${name}`);
  const tars: LayerTar[] = [];
  for (const id of image.layers.toReversed()) tars.push(await tarOf(store, id, packer));
  // From here on nothing waits, so that no sweep finds a document that no image names.
  const config = Buffer.from(JSON.stringify(configOf(image, tars)));
  const configDigest = keepDocument(store, config);
  const about = { digest: configDigest, sizeBytes: config.length };
  const manifest = Buffer.from(JSON.stringify(manifestOf(about, tars, image.onBase === true)));
  const digest = keepDocument(store, manifest);
  const blobs = tars.map((tar) => tar.digest);
  const addressed = nameFor(digest);
  const remote = { repositories: [], blobs, manifest: digest, config: configDigest };
  const { sizeBytes } = saveManifest(store, { ...image, name: addressed, remote });
  return { name: addressed, digest, sizeBytes };
}

async function tarOf(store: ImageStore, id: string, packer: LayerPacker): Promise<LayerTar> {
  const known = layerNotes(store, id)?.tar;
  if (known) return known;
  const tar = await packer.describe(layerDir(store, id));
  noteTar(store, id, tar);
  return tar;
}

function configOf({ document, env, workDir, argv, onBase }: Manifest, tars: readonly LayerTar[]): object {
  const said = document ?? {
    Env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
    WorkingDir: workDir,
    Cmd: argv,
  };
  const labels = { ...said.Labels, ...(onBase ? { [BASE_LABEL]: ON_MACHINE } : {}) };
  return {
    ...PLATFORM,
    config: { ...said, ...(Object.keys(labels).length > 0 ? { Labels: labels } : {}) },
    rootfs: { type: "layers", diff_ids: tars.map(({ digest }) => digest) },
    history: tars.map(() => ({ created_by: "berth" })),
  };
}

const manifestOf = (config: LayerTar, layers: readonly LayerTar[], onBase: boolean): object => ({
  schemaVersion: 2,
  mediaType: MANIFEST_TYPE,
  config: { mediaType: `${OCI}.config.v1+json`, digest: config.digest, size: config.sizeBytes },
  layers: layers.map(({ digest, sizeBytes }) => ({ mediaType: `${OCI}.layer.v1.tar`, digest, size: sizeBytes })),
  ...(onBase ? { annotations: { [BASE_LABEL]: ON_MACHINE } } : {}),
});

/** A part of an image that the image's own manifest names; null when it is not here. */
export function imagePart(
  { store, packer }: { store: ImageStore; packer: LayerPacker },
  name: string,
  digest: string,
): ImagePart | null {
  const image = findManifest(store, name);
  if (!image?.remote) return null;
  const { manifest, config, blobs } = image.remote;
  const index = blobs.indexOf(digest);
  if (digest !== manifest && digest !== config && index < 0) return null;
  const file = (index < 0 ? documentFile : blobFile)(store, digest);
  if (existsSync(file)) return { file, sizeBytes: statSync(file).size, open: () => createReadStream(file) };
  const id = image.layers.at(-1 - index);
  const tar = index < 0 || id === undefined ? undefined : layerNotes(store, id)?.tar;
  if (id === undefined || tar?.digest !== digest) return null;
  return { sizeBytes: tar.sizeBytes, open: () => packer.open(layerDir(store, id)) };
}
