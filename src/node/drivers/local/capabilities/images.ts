/** Images of this machine, as its driver offers them. */
import { join } from "node:path";
import type { RemoteImage } from "../../../../registry/manifest.ts";
import type { AddressedImage, Assembly, Image, ImagePart, Images } from "../../../capabilities/images.ts";
import type { CallOptions } from "../../../dial/endpoint.ts";
import type { Unpack } from "../../common/unpack-job.ts";
import { LocalAssembly } from "../images/assembly.ts";
import { type Loader, loadImage } from "../images/image-archive.ts";
import { addManifestTo, imagePart, type LayerPacker, layerPacker } from "../images/image-parts.ts";
import {
  findImage,
  type ImageStore,
  imageBytes,
  listImages,
  type ResolvedImage,
  removeImage,
  removeUnused,
  resolveImage,
} from "../images/images.ts";
import { identityFor, type Machine } from "../machine/machine.ts";

export interface LocalImagesOptions {
  store: ImageStore;
  machine: Machine;
  unpack: Unpack;
  /** Layers that workloads and snapshots stand on. */
  layersInUse: () => Set<string>;
  /** Ends the prepared workloads of images that are gone. */
  unstock: (isGone: (image: ResolvedImage) => boolean) => Promise<void>;
}

export class LocalImages implements Images {
  readonly #options: LocalImagesOptions;
  readonly #packer: LayerPacker;

  constructor(options: LocalImagesOptions) {
    this.#options = options;
    this.#packer = layerPacker(join(options.machine.binDir, "sandboxd"));
  }

  load(tarPath: string, name: string, options: CallOptions = {}): Promise<Image> {
    return loadImage(this.#loader(), tarPath, name, options);
  }

  async assemble(image: RemoteImage, repository: string): Promise<Assembly> {
    return new LocalAssembly(this.#loader(), image, repository, this.#options.layersInUse);
  }

  addManifest(name: string, nameFor: (digest: string) => string): Promise<AddressedImage> {
    return addManifestTo({ store: this.#options.store, packer: this.#packer }, name, nameFor);
  }

  async part(name: string, digest: string): Promise<ImagePart | null> {
    return imagePart({ store: this.#options.store, packer: this.#packer }, name, digest);
  }

  #loader(): Loader {
    const { store, machine, unpack } = this.#options;
    return { store, spawner: machine.spawner, unpack, identity: identityFor(machine, null) };
  }

  async find(name: string): Promise<Image | null> {
    return findImage(this.#options.store, name);
  }

  async bytes(name: string): Promise<number | null> {
    return imageBytes(this.#options.store, name);
  }

  async list(): Promise<Image[]> {
    return listImages(this.#options.store);
  }

  async remove(name: string): Promise<boolean> {
    const removed = await removeImage(this.#options.store, name, this.#options.layersInUse());
    if (removed) await this.sweep();
    return removed;
  }

  async sweep(): Promise<void> {
    const { store, unstock, layersInUse } = this.#options;
    await unstock(({ name }) => resolveImage(store, name) === null);
    await removeUnused(store, layersInUse());
  }
}
