/**
 * Loads an image of a stranger. The archive is read in a cage, as the local driver reads it, and only the files that its
 * manifest names go to the engine, once every entry of its layers was read, under one name that the platform chose: names in the archive are dropped, since the
 * engine would give them to this image and take them from another. Layers go there uncompressed, and no more bytes than
 * an image may have.
 */
import { closeSync, openSync } from "node:fs";
import { mkdir, mkdtemp, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import { plainBytes, type Range, writeAll } from "../../../../unpack/bytes.ts";
import { ArchiveRefused } from "../../../../unpack/refusal.ts";
import type { CallOptions } from "../../../dial/endpoint.ts";
import { tarStream } from "../../common/tar-stream.ts";
import type { Unpack } from "../../common/unpack-job.ts";
import { describe, openArchive } from "../../local/images/image-archive.ts";
import { budgetFor, unpackedMax } from "../../local/images/image-budget.ts";
import { type DockerClient, DockerRefusal } from "../engine/docker-client.ts";
import { heard } from "./base-image.ts";
import { foreignConfig } from "./foreign-config.ts";

export interface LoadOptions {
  client: DockerClient;
  unpack: Unpack;
  /** Folder for unfinished loads. */
  dir: string;
}

/** `name` is the image's only name in the engine. */
export type LoadImage = (tarPath: string, name: string, options?: CallOptions) => Promise<void>;

const [CONFIG, MANIFEST] = ["config.json", "manifest.json"];

export const imageLoader =
  ({ client, unpack, dir }: LoadOptions): LoadImage =>
  async (tarPath, name, options = {}) => {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const temp = await mkdtemp(join(dir, "load-"));
    try {
      const bytesMax = await unpackedMax((await stat(tarPath)).size, temp);
      const archive = await openArchive({ unpack }, tarPath, join(temp, "plain"), bytesMax, options);
      const out = join(temp, "out");
      await mkdir(out);
      const image = await describe(archive);
      const layers = image.layers.map(archive.find);
      const [budget, empty] = [budgetFor(bytesMax), join(temp, "empty")];
      await mkdir(empty);
      await unpack({ work: { kind: "check", layers, budget }, archive: archive.path, target: empty }, options);
      await writeFile(join(out, CONFIG), foreignConfig(await archive.bytes(image.configName)));
      const files = await writePlain(archive.path, layers, out, name, bytesMax);
      options.signal?.throwIfAborted();
      const tar = tarStream(["--owner=0", "--group=0", "-C", out, ...files]);
      heard(await client.text("POST", "/images/load", { query: { quiet: true }, tar, patient: true, ...options }));
    } catch (error) {
      if (error instanceof DockerRefusal) throw refused(error.message);
      throw error instanceof ArchiveRefused ? refused(error.message) : error;
    } finally {
      await removeTree(temp);
    }
  };

/** Writes the files of one image beside its configuration, as `docker save` would, and answers their names. */
async function writePlain(
  path: string,
  layers: readonly Range[],
  out: string,
  name: string,
  bytesMax: number,
): Promise<string[]> {
  let left = bytesMax;
  const input = openSync(path, "r");
  const names: string[] = [];
  try {
    for (const [index, layer] of layers.entries()) {
      const file = `layer-${index}.tar`;
      const output = openSync(join(out, file), "wx", 0o600);
      try {
        for await (const chunk of plainBytes(input, layer)) {
          left -= chunk.length;
          if (left < 0) throw refused("it is larger than an image may be");
          writeAll(output, chunk);
        }
      } finally {
        closeSync(output);
      }
      names.push(file);
    }
  } finally {
    closeSync(input);
  }
  await writeFile(join(out, MANIFEST), JSON.stringify([{ Config: CONFIG, RepoTags: [name], Layers: names }]));
  return [MANIFEST, CONFIG, ...names];
}

const refused = (reason: string): PlatformError =>
  new PlatformError("bad_request", `The image is refused: ${reason.slice(0, 300)}.`);
