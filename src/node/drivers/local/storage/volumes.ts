/**
 * Volumes: directories of limited size. Where the machine can, a volume is an ext4 file system in a sparse file,
 * mounted only while a workload uses it and only in that workload's namespace: when the workload ends, however it ends,
 * the kernel unmounts it and frees the loop device. Elsewhere a volume is a plain directory without a size limit
 * (`sized: false`).
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { Volume, VolumeSpec } from "../../../capabilities/volumes.ts";
import { makeImage, mountImage, runTool, unmountImage, unmountLeftovers } from "./loop-image.ts";

export interface VolumeStore {
  dir: string;
  /** Whether ext4 images can be made and mounted on this machine. */
  sized: boolean;
}

export interface VolumeRecord {
  id: string;
  sizeMb: number;
  sized: boolean;
}

/** Smallest sized volume; below it ext4 has no room for its own tables. */
const SIZED_MB_MIN = 4;

/** Tries to make and mount an image once: tools, loop devices and rights are all needed. */
export async function openVolumeStore(dir: string): Promise<{ store: VolumeStore; missing: string | null }> {
  mkdirSync(dir, { recursive: true });
  await unmountLeftovers(dir);
  for (const name of readdirSync(dir)) if (name.startsWith(".")) await removeTree(join(dir, name));
  const store = { dir, sized: true };
  const trial = join(dir, ".trial");
  try {
    await makeSized(trial, { id: ".trial", sizeMb: SIZED_MB_MIN, sized: true });
    await mountImage(join(trial, "image"), join(trial, "mnt"));
    await unmountImage(join(trial, "mnt"));
    return { store, missing: null };
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    return { store: { dir, sized: false }, missing: `Volumes have no enforced size (${reason}).` };
  } finally {
    await removeTree(trial);
  }
}

export async function createVolume(store: VolumeStore, spec: VolumeSpec): Promise<Volume> {
  const there = await observeVolume(store, spec.id);
  if (there) return there;
  const record = { id: spec.id, sizeMb: spec.sizeMb, sized: store.sized && spec.sizeMb >= SIZED_MB_MIN };
  return keep(store, record, async (temp) => {
    if (record.sized) return makeSized(temp, record, spec.from);
    mkdirSync(join(temp, "data"), { recursive: true });
    if (spec.from) cpSync(spec.from, join(temp, "data"), { recursive: true, verbatimSymlinks: true });
  });
}

/** The whole volume, or none: `make` fills a folder that becomes the volume. */
export async function keep(
  store: Pick<VolumeStore, "dir">,
  record: VolumeRecord,
  make: (temp: string) => Promise<void>,
): Promise<Volume> {
  const temp = join(store.dir, `.${record.id}`);
  rmSync(temp, { recursive: true, force: true });
  try {
    await make(temp);
    await writeFile(join(temp, "volume.json"), JSON.stringify(record));
    renameSync(temp, join(store.dir, record.id));
  } catch (error) {
    rmSync(temp, { recursive: true, force: true });
    if (error instanceof PlatformError) throw error;
    throw new PlatformError("unprocessable", "The volume could not be made; is its content larger than it?", {
      cause: error,
    });
  }
  return { ...record, usedBytes: await usedBytes(join(store.dir, record.id), record.sized) };
}

export async function observeVolume(store: Pick<VolumeStore, "dir">, id: string): Promise<Volume | null> {
  const record = readVolume(store, id);
  return record && { ...record, usedBytes: await usedBytes(join(store.dir, id), record.sized) };
}

export function readVolume({ dir }: Pick<VolumeStore, "dir">, id: string): VolumeRecord | null {
  const file = join(dir, id, "volume.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as VolumeRecord) : null;
}

export async function destroyVolume(store: Pick<VolumeStore, "dir">, id: string): Promise<void> {
  const dir = join(store.dir, id);
  if (!existsSync(dir)) return;
  const trash = join(store.dir, `.${id}.${process.pid}`);
  renameSync(dir, trash);
  await removeTree(trash);
}

/** Makes the volume's files visible on the host until `release`, while a workload's start mounts them. */
export async function exposeVolume(
  store: VolumeStore,
  id: string,
): Promise<{ path: string; release: () => Promise<void> }> {
  const volume = await observeVolume(store, id);
  if (!volume) throw new PlatformError("bad_request", `There is no volume ${id}.`);
  const dir = join(store.dir, id);
  if (!volume.sized) return { path: join(dir, "data"), release: async () => {} };
  const path = join(dir, "mnt");
  await mountImage(join(dir, "image"), path);
  return { path, release: () => unmountImage(path) };
}

async function makeSized(dir: string, record: VolumeRecord, from?: string): Promise<void> {
  mkdirSync(join(dir, "mnt"), { recursive: true });
  await makeImage(join(dir, "image"), record.sizeMb, from ? ["-d", from] : []);
}

/** The use of a sized volume is the allocation of its image file, file system tables included. */
async function usedBytes(dir: string, sized: boolean): Promise<number> {
  return sized ? statSync(join(dir, "image")).blocks * 512 : folderBytes(join(dir, "data"));
}

/** Disk space of the files below a folder. Skips files that the server may not see or that vanish meanwhile. */
export async function folderBytes(dir: string): Promise<number> {
  const { stdout } = await runTool("du", ["-sk", dir]).catch((error: { stdout?: string }) => {
    if (error.stdout) return { stdout: error.stdout };
    throw error;
  });
  return Number.parseInt(stdout, 10) * 1024;
}
