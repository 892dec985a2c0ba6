/** Images of the engine, as its driver offers them. */
import type { Image, Images } from "../../../capabilities/images.ts";
import type { CallOptions } from "../../../dial/endpoint.ts";
import { BASE_NAMES } from "../../../images/base-names.ts";
import { imagesSchema } from "../engine/answers.ts";
import { type DockerClient, DockerRefusal } from "../engine/docker-client.ts";
import { baseRepo, encodePath, findImage, type ImageNames, normalise, type ResolvedImage } from "./docker-images.ts";
import type { LoadImage } from "./load-image.ts";

export interface DockerImagesOptions {
  client: DockerClient;
  names: ImageNames;
  load: LoadImage;
}

export class DockerImages implements Images {
  readonly #options: DockerImagesOptions;

  constructor(options: DockerImagesOptions) {
    this.#options = options;
  }

  async load(tarPath: string, name: string, options: CallOptions = {}): Promise<Image> {
    const { load, names } = this.#options;
    await load(tarPath, `${names.owner}/${normalise(name)}`, options);
    const loaded = await this.find(name);
    if (loaded) return loaded;
    await this.remove(name);
    throw new Error("Docker does not know the image that it has just loaded");
  }

  async find(name: string): Promise<Image | null> {
    const { client, names } = this.#options;
    const found = await findImage(client, names, name);
    return found && shown(found);
  }

  async bytes(name: string): Promise<number | null> {
    return (await this.find(name))?.sizeBytes ?? null;
  }

  async list(): Promise<Image[]> {
    const { client, names } = this.#options;
    const all = await client.json(imagesSchema, "GET", "/images/json");
    const tags = all
      .flatMap(({ RepoTags: repoTags }) => repoTags ?? [])
      .filter((tag) => !tag.startsWith(`${baseRepo(names.brand)}:`))
      .map((tag) => (tag.startsWith(`${names.owner}/`) ? tag.slice(names.owner.length + 1) : tag));
    const found = [...BASE_NAMES.map((name) => `${names.brand}/${name}:latest`), ...new Set(tags)];
    const images: Image[] = [];
    for (const name of found) {
      const image = await this.find(name);
      if (image) images.push(image);
    }
    return images;
  }

  /** Only images that the platform loaded: the others are the operator's. */
  async remove(name: string): Promise<boolean> {
    const { client, names } = this.#options;
    const reference = `${names.owner}/${normalise(name)}`;
    try {
      await client.text("DELETE", `/images/${encodePath(reference)}`, { query: { force: true } });
      return true;
    } catch (error) {
      if (error instanceof DockerRefusal && error.status === 404) return false;
      throw error;
    }
  }
}

const shown = ({ userSpec: _, ...image }: ResolvedImage): Image => image;
