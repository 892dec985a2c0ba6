/**
 * The disks of workloads: every root is a file system of its own, in a sparse file of the workload's folder. Its size
 * and its number of files end, whatever the workload does. It is mounted only in the workload's namespace; when the
 * workload ends, however it ends, the kernel unmounts it and frees the loop device.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, type StatsFs, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { removeTree } from "../../../../lib/remove-tree.ts";
import type { DiskMount } from "../workload/launch-program.ts";
import { type ImageTemplate, readTemplate, writeTemplate } from "./image-template.ts";
import { deviceAt, makeImage, mountImage, unmountImage } from "./loop-image.ts";
import { type Root, roomsOf, rootOf } from "./rooms.ts";

/** A root that is mounted in a workload. */
export interface LiveRoot {
  /** Folder of the workload. */
  dir: string;
  /** A process inside. */
  pid: number;
  /** Its block device, such as `loop7`. */
  device: string;
  sizeMb: number;
  /** Nothing inside writes: it is frozen, or has no owner yet. */
  still: boolean;
}

export interface RootDisksOptions {
  /** Folder of the driver, on the disk that all roots share. */
  dir: string;
  /** Bytes that roots leave free on that disk. */
  keepFreeBytes: number;
  roots(): LiveRoot[];
  /** Called for a look in the background that failed. */
  onError(error: unknown): void;
}

const IMAGE = "disk.img";
/** Smallest size; below it ext4 has no room for its own tables. */
export const ROOT_MB_MIN = 64;
/** One file for every 8 KB (npm packages are as small), and a journal that is enough for one workload. */
const LAYOUT = ["-b", "4096", "-i", "8192", "-J", "size=4", "-O", "^resize_inode"];
const MB = 1024 * 1024;
const TEMPLATES_MAX = 16;
/** Below lie devices that other programs use. A number goes up to 2^20. */
const FIRST_DEVICE = 1024;
const DEVICE_RANGE = 1024;
const DEVICE_RANGES = 512;
const CLUSTER_BYTES = 4096;
/** Time between looks at the disk. Between two looks a root takes no more than its room. */
const LOOK_MS = 1_000;
/** Smaller changes of a room are not written. */
const STEP_BYTES = 1024 * 1024;

export class RootDisks {
  readonly #options: RootDisksOptions;
  /** Clusters that each device may not use, as written last. */
  readonly #reserved = new Map<string, number>();
  /** New disks by size in MB. */
  readonly #templates = new Map<number, ImageTemplate>();
  /** Devices of starts that have not ended. */
  readonly #trying = new Set<number>();
  /** Servers of one machine begin at different devices, so that they seldom try the same. */
  readonly #first: number;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: RootDisksOptions) {
    this.#options = options;
    const hash = createHash("sha256").update(options.dir).digest().readUInt16LE(0);
    this.#first = FIRST_DEVICE + (hash % DEVICE_RANGES) * DEVICE_RANGE;
  }

  /** Null when the root of a workload can have a size here; otherwise the reason. Tries one. */
  async trial(): Promise<string | null> {
    if (process.getuid?.() !== 0) return "Roots of workloads have no size (the server does not run as root).";
    const dir = mkdtempSync(join(this.#options.dir, "tmp", "disk-"));
    try {
      await this.make(dir, ROOT_MB_MIN);
      const { device, release } = await this.expose(dir);
      try {
        writeFileSync(reservedFile(device), "0");
      } finally {
        await release();
      }
      return null;
    } catch (error) {
      const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
      return `Roots of workloads have no size (${reason}).`;
    } finally {
      await removeTree(dir);
    }
  }

  /** Makes the disk in the folder of a workload, once. */
  async make(dir: string, sizeMb: number): Promise<void> {
    const image = join(dir, IMAGE);
    if (existsSync(image)) return;
    const template = this.#templates.get(sizeMb);
    if (template) return writeTemplate(template, image);
    await makeImage(image, sizeMb, LAYOUT);
    const found = await readTemplate(image, sizeMb * MB);
    if (this.#templates.size >= TEMPLATES_MAX) this.#templates.clear();
    if (found) this.#templates.set(sizeMb, found);
  }

  /** The disk as a start takes it, with a loop device that nothing used a moment ago. */
  take(dir: string): DiskMount {
    const taken = new Set(this.#options.roots().map(({ device }) => device));
    for (let device = this.#first; ; device++) {
      if (taken.has(`loop${device}`) || this.#trying.has(device) || existsSync(`/sys/block/loop${device}/loop`))
        continue;
      this.#trying.add(device);
      return { image: join(dir, IMAGE), device };
    }
  }

  /** Called when the start that took it has ended, one way or the other. */
  tried({ device }: DiskMount): void {
    this.#trying.delete(device);
  }

  /** Mounts the disk at `fs` of the workload's folder on the host until `release`, for a copy. */
  async expose(dir: string): Promise<{ device: string; release: () => Promise<void> }> {
    const at = join(dir, "fs");
    mkdirSync(at, { recursive: true, mode: 0o755 });
    await mountImage(join(dir, IMAGE), at);
    const device = deviceAt(at);
    if (device === null) throw new Error(`${at} is not mounted`);
    return { device, release: () => unmountImage(at) };
  }

  /** Bounds the room of all roots now, and from now on. */
  watch(): void {
    this.look();
    this.#timer ??= setInterval(() => this.#lookAgain(), LOOK_MS).unref();
  }

  stop(): void {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
  }

  look(): void {
    const { dir, keepFreeBytes } = this.#options;
    const roots = this.#options.roots().filter(({ still }) => !still);
    const { bavail, bsize } = statfsSync(dir);
    const available = bavail * bsize - keepFreeBytes;
    for (const device of this.#reserved.keys())
      if (!roots.some((root) => root.device === device)) this.#reserved.delete(device);
    // Most of the time there is room for all that is promised, and nothing has to be measured.
    if (roots.reduce((sum, { sizeMb }) => sum + sizeMb * MB, 0) <= available) {
      for (const { device } of roots) if (this.#reserved.get(device) !== 0) this.#reserve(device, 0);
      return;
    }
    const all = roots.flatMap((root) => measured(root) ?? []);
    const rooms = roomsOf(all, available);
    all.forEach(({ device, freeBytes }, index) => {
      this.#reserve(device, Math.max(0, freeBytes - (rooms[index] ?? 0)));
    });
  }

  #lookAgain(): void {
    try {
      this.look();
    } catch (error) {
      this.#options.onError(error);
    }
  }

  #reserve(device: string, bytes: number): void {
    const clusters = Math.floor(bytes / CLUSTER_BYTES);
    const before = this.#reserved.get(device);
    if (before !== undefined && Math.abs(before - clusters) * CLUSTER_BYTES < STEP_BYTES) return;
    try {
      writeFileSync(reservedFile(device), String(clusters));
      this.#reserved.set(device, clusters);
    } catch (error) {
      // The workload has ended, and its file system with it.
      if (!GONE.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
    }
  }
}

const reservedFile = (device: string): string => `/sys/fs/ext4/${device}/reserved_clusters`;

const GONE = new Set(["ENOENT", "ESRCH"]);

/** Space that the files of a workload take on its disk; undefined for a workload whose folder is gone. */
export function usedOnDisk(dir: string, pid: number, sizeMb: number): number | undefined {
  const image = statSync(join(dir, IMAGE), { throwIfNoEntry: false });
  return image && rootOf(toldOf({ pid }), sizeMb * MB, image.blocks * 512).usedBytes;
}

/** Null for a workload whose folder is gone. */
function measured(root: LiveRoot): (LiveRoot & Root) | null {
  const image = statSync(join(root.dir, IMAGE), { throwIfNoEntry: false });
  return image ? { ...root, ...rootOf(toldOf(root), root.sizeMb * MB, image.blocks * 512) } : null;
}

function toldOf({ pid }: Pick<LiveRoot, "pid">): StatsFs | null {
  try {
    return statfsSync(`/proc/${pid}/root`);
  } catch (error) {
    // A process that is ending has no root any more.
    if (GONE.has((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
}
