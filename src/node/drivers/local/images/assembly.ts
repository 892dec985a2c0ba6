/**
 * An image of a registry, unpacked layer by layer. A layer that is here already is used again, but only for images of a
 * repository that it came from before: the digests in a manifest say what its author claims, not what the author has,
 * and a registry of a tenant could name the layers of another tenant's private image.
 */
import { createHash } from "node:crypto";
import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { RemoteImage } from "../../../../registry/manifest.ts";
import type { Budget } from "../../../../unpack/budget.ts";
import type { Assembly, Image } from "../../../capabilities/images.ts";
import type { CallOptions } from "../../../dial/endpoint.ts";
import { keepsOwners, type Loader, settleLayer } from "./image-archive.ts";
import { budgetFor, unpackedMax } from "./image-budget.ts";
import { type ImageConfig, parseConfig, refused, runningOf } from "./image-config.ts";
import { isOnBase, keepBlob, keepDocument } from "./image-parts.ts";
import {
  baseFolders,
  chained,
  findManifest,
  fitsBase,
  keepLayer,
  layerDir,
  layerNotes,
  listManifests,
  type Remote,
  removeUnused,
  saveManifest,
  unfinished,
} from "./images.ts";

/** Names of opaque folders that fit a job's command line; real images have a few. */
const NOTES_BYTES_MAX = 48 * 1024;
const LAYER = "layer";

export class LocalAssembly implements Assembly {
  readonly present: number;
  readonly #loader: Loader;
  readonly #image: RemoteImage;
  readonly #repository: string;
  readonly #layersInUse: () => ReadonlySet<string>;
  readonly #config: ImageConfig;
  /** Ids of the layers, lowest first: each depends on those below. */
  readonly #chain: string[];
  readonly #temp: string;
  #added: number;
  #budget: Budget | null = null;
  #isFinished = false;

  constructor(loader: Loader, image: RemoteImage, repository: string, layersInUse: () => ReadonlySet<string>) {
    this.#loader = loader;
    this.#image = image;
    this.#repository = repository;
    this.#layersInUse = layersInUse;
    this.#config = parseConfig(image.config);
    this.#chain = chainOf(this.#config.rootfs?.diff_ids ?? []);
    this.#temp = unfinished(loader.store, "pull");
    for (const id of this.#held()) loader.store.held.set(id, (loader.store.held.get(id) ?? 0) + 1);
    this.present = this.#countPresent();
    this.#added = this.present;
  }

  async add(file: string, options: CallOptions = {}): Promise<void> {
    const { store } = this.#loader;
    const index = this.#added;
    const [id, blob] = [this.#chain[index], this.#image.layers[index]?.digest];
    if (id === undefined || blob === undefined) throw new Error("an image got more layers than it has");
    await store.layerTurns.run(id, async () => {
      options.signal?.throwIfAborted();
      // The caller has the blob, and it is known to unpack to this layer: another pull did that meanwhile.
      if (!layerNotes(store, id)?.blobs.includes(blob)) await this.#unpack(index, file, options);
      await keepBlob(store, blob, file);
    });
    this.#added = index + 1;
  }

  async #unpack(index: number, file: string, options: CallOptions): Promise<void> {
    const { store, unpack } = this.#loader;
    const below = this.#chain.slice(0, index).toReversed();
    const target = join(this.#temp, String(index));
    await mkdir(target, { recursive: true });
    this.#budget ??= budgetFor(await unpackedMax(this.#image.sizeBytes, this.#temp));
    const { size } = await stat(file);
    const opaqueBelow = below.map((each) => layerNotes(store, each)?.opaque ?? []);
    if (Buffer.byteLength(JSON.stringify(opaqueBelow)) > NOTES_BYTES_MAX)
      throw refused("its layers hide more folders than those of an image may");
    const work = {
      kind: "layers" as const,
      layers: [{ name: LAYER, start: 0, size }],
      lowers: opaqueBelow.map((opaque) => ({ path: "", opaque })),
      budget: this.#budget,
      owners: keepsOwners(this.#loader),
    };
    const lowers = below.map((each) => layerDir(store, each));
    const [layer] = (await unpack({ work, archive: file, target, lowers }, options)).layers;
    if (!layer || layer.digest !== this.#config.rootfs?.diff_ids?.[index])
      throw refused("a layer's content has another digest than its configuration says");
    const dir = join(target, LAYER);
    await settleLayer(this.#loader, dir, layer);
    const { opaque, sizeBytes, entries } = layer;
    this.#budget = { ...budgetFor(this.#budget.bytes - sizeBytes), entries: this.#budget.entries - entries };
    const blobs = [this.#image.layers[index]?.digest ?? ""];
    keepLayer(store, this.#chain[index] ?? "", dir, { opaque, sizeBytes, blobs });
    await removeTree(target);
  }

  async finish(name: string): Promise<Image> {
    const { store } = this.#loader;
    if (this.#added < this.#chain.length) throw new Error("an image is finished before its last layer");
    const layers = this.#chain.toReversed();
    const onBase = isOnBase(this.#config.config);
    if (onBase && !layers.every((id) => fitsBase(store, layerDir(store, id))))
      throw refused("its layers do not fit the base image of this machine");
    const lowers = onBase ? baseFolders(store) : [];
    const running = runningOf(this.#config, [...layers.map((id) => layerDir(store, id)), ...lowers]);
    const saved = saveManifest(store, {
      name,
      digest: `sha256:${createHash("sha256").update(this.#image.config).digest("hex")}`,
      sizeBytes: layers.reduce((sum, id) => sum + (layerNotes(store, id)?.sizeBytes ?? 0), 0),
      ...running,
      createdAt: new Date().toISOString(),
      layers,
      ...(onBase ? { onBase } : {}),
      remote: this.#remote(name),
    });
    this.#isFinished = true;
    return saved;
  }

  #remote(name: string): Required<Remote> {
    const { store } = this.#loader;
    const before = findManifest(store, name)?.remote?.repositories ?? [];
    const blobs = this.#image.layers.map(({ digest }) => digest);
    const repositories = [...new Set([...before, this.#repository])];
    const [manifest, config] = [keepDocument(store, this.#image.manifest), keepDocument(store, this.#image.config)];
    return { repositories, blobs, manifest, config };
  }

  /** Layers of this image, unpacked and as the registry sent them: no manifest names them yet. */
  #held(): string[] {
    return [...this.#chain, ...this.#image.layers.map(({ digest }) => digest)];
  }

  /** Layers that an image of the same repository has brought, from the lowest on. */
  #countPresent(): number {
    const { store } = this.#loader;
    const proven = new Set(
      listManifests(store).flatMap(({ remote, layers }) =>
        remote?.repositories.includes(this.#repository)
          ? remote.blobs.map((blob, index) => `${blob} ${layers.at(-1 - index)}`)
          : [],
      ),
    );
    const missing = this.#chain.findIndex(
      (id, index) => !proven.has(`${this.#image.layers[index]?.digest} ${id}`) || !layerNotes(store, id),
    );
    return missing < 0 ? this.#chain.length : missing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { store } = this.#loader;
    for (const id of this.#held()) {
      const left = (store.held.get(id) ?? 1) - 1;
      if (left === 0) store.held.delete(id);
      else store.held.set(id, left);
    }
    await removeTree(this.#temp);
    if (!this.#isFinished) await removeUnused(store, this.#layersInUse());
  }
}

function chainOf(digests: readonly string[]): string[] {
  const chain: string[] = [];
  for (const digest of digests) chain.push(chained(chain.at(-1), digest));
  return chain;
}
