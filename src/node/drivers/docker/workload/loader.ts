/**
 * The C library for images without one. The daemon needs the machine's dynamic loader to start, and many images are made
 * without it (Alpine, or a single static program): their containers get it before they start.
 */

import { tarStream } from "../../common/tar-stream.ts";
import { type DockerClient, DockerRefusal } from "../engine/docker-client.ts";
import type { ResolvedImage } from "../images/docker-images.ts";

export interface LoaderOptions {
  client: DockerClient;
  /** Folder with the loader and its libraries at their paths; null on a machine with another C library. */
  dir: string | null;
  /** Path of the loader. */
  path: string;
}

export class Loader {
  readonly #options: LoaderOptions;
  /** Whether an image has a loader of its own, by the image's id. */
  readonly #has = new Map<string, boolean>();

  constructor(options: LoaderOptions) {
    this.#options = options;
  }

  async provide(container: string, { digest }: ResolvedImage): Promise<void> {
    const { client, dir, path } = this.#options;
    if (dir === null) return;
    const has = this.#has.get(digest) ?? (await this.#look(container, path));
    this.#has.set(digest, has);
    if (has) return;
    const tar = tarStream(["--owner=0", "--group=0", "-C", dir, "."]);
    await client.text("PUT", `/containers/${container}/archive`, { query: { path: "/" }, tar });
  }

  async #look(container: string, path: string): Promise<boolean> {
    try {
      await this.#options.client.bytes("HEAD", `/containers/${container}/archive`, 0, { query: { path } });
      return true;
    } catch (error) {
      if (error instanceof DockerRefusal && error.status === 404) return false;
      throw error;
    }
  }
}
