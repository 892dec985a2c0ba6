/** Images of this machine, as its driver offers them. */
import type { Image, Images } from "../../../capabilities/images.ts";
import type { CallOptions } from "../../../dial/endpoint.ts";
import { loadImage } from "../images/image-archive.ts";
import { findImage, type ImageStore, imageBytes, listImages, removeImage } from "../images/images.ts";
import { identityFor, type Machine } from "../machine/machine.ts";
import type { Unpack } from "../unpack/cage.ts";

export interface LocalImagesOptions {
  store: ImageStore;
  machine: Machine;
  unpack: Unpack;
  /** Layers that workloads and snapshots stand on. */
  layersInUse: () => Set<string>;
}

export class LocalImages implements Images {
  readonly #options: LocalImagesOptions;

  constructor(options: LocalImagesOptions) {
    this.#options = options;
  }

  load(tarPath: string, name: string, options: CallOptions = {}): Promise<Image> {
    const { store, machine, unpack } = this.#options;
    const loader = { store, spawner: machine.spawner, unpack, identity: identityFor(machine, null) };
    return loadImage(loader, tarPath, name, options);
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

  remove(name: string): Promise<boolean> {
    return removeImage(this.#options.store, name, this.#options.layersInUse());
  }
}
