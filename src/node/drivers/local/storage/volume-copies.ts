/** Copies of volumes: folders like those of volumes, which nothing mounts for writing. */
import { mkdirSync, mkdtempSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { PlatformError } from "../../../../contract/errors.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { VolumeCopy } from "../../../capabilities/volume-copies.ts";
import type { Volume } from "../../../capabilities/volumes.ts";
import { plainTarStream } from "../../common/tar-stream.ts";
import { copyFrozen, copyStill } from "./frozen-copy.ts";
import { mountImage, mountToRead, unmountImage, unmountLeftovers } from "./loop-image.ts";
import type { CopyTree } from "./tree-copy.ts";
import { keep, observeVolume, readVolume, type VolumeRecord } from "./volumes.ts";

/** Where volumes or copies are. */
interface Place {
  dir: string;
}

/** Removes what a server left unfinished. */
export async function openCopies(dir: string): Promise<void> {
  mkdirSync(dir, { recursive: true });
  await unmountLeftovers(dir);
  for (const name of readdirSync(dir)) if (name.startsWith(".")) await removeTree(join(dir, name));
}

/** Copies the volume or copy `from` to another place, under another id. The caller keeps its writers still. */
export async function copyVolume(
  from: Place & { id: string; isMounted: boolean },
  to: Place & { id: string },
  copyTree: CopyTree,
): Promise<Volume> {
  const found = readVolume(from, from.id);
  if (!found) throw new PlatformError("unprocessable", `There is no copy or volume ${from.id} on this machine.`);
  const record: VolumeRecord = { ...found, id: to.id };
  const source = join(from.dir, from.id);
  return keep(to, record, async (temp) => {
    mkdirSync(join(temp, record.sized ? "mnt" : ""), { recursive: true });
    try {
      if (!record.sized) await copyTree(join(source, "data"), join(temp, "data"));
      else if (from.isMounted) await copyMounted(source, join(temp, "image"));
      else await copyStill(join(source, "image"), join(temp, "image"));
    } catch (error) {
      throw new PlatformError("unprocessable", "The files of the volume could not be copied; is the disk full?", {
        cause: error,
      });
    }
  });
}

/** Also right for a volume that nobody uses: the kernel may still be busy with the end of its last user. */
async function copyMounted(source: string, image: string): Promise<void> {
  const at = join(source, "mnt");
  await mountImage(join(source, "image"), at);
  try {
    await copyFrozen(join(source, "image"), image, at);
  } finally {
    await unmountImage(at);
  }
}

export async function packCopy(place: Place, id: string): Promise<Readable> {
  const record = readVolume(place, id);
  if (!record) throw new PlatformError("unprocessable", `There is no copy ${id} on this machine.`);
  const folder = join(place.dir, id);
  if (!record.sized) return plainTarStream(join(folder, "data"));
  const at = mkdtempSync(join(place.dir, ".pack-"));
  const close = async (): Promise<void> => {
    await unmountImage(at).catch(() => {}); // not mounted
    await removeTree(at);
  };
  try {
    await mountToRead(join(folder, "image"), at);
  } catch (error) {
    await close();
    throw error;
  }
  const tar = plainTarStream(at);
  tar.once("close", () => void close());
  return tar;
}

export async function observeCopy(place: Place, id: string): Promise<VolumeCopy | null> {
  const found = await observeVolume(place, id);
  if (!found) return null;
  const { sizeMb, usedBytes } = found;
  return {
    id,
    sizeMb,
    usedBytes: usedBytes ?? 0,
    createdAt: statSync(join(place.dir, id, "volume.json")).mtime.toISOString(),
  };
}

export async function listCopies(place: Place): Promise<VolumeCopy[]> {
  const copies: VolumeCopy[] = [];
  for (const id of readdirSync(place.dir)) {
    const found = id.startsWith(".") ? null : await observeCopy(place, id);
    if (found) copies.push(found);
  }
  return copies;
}
