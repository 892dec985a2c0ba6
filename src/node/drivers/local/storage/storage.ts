/** Volumes and drives of this machine, and how they are mounted into workloads. */
import { join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import type { Drives } from "../../../capabilities/drives.ts";
import type { Volumes } from "../../../capabilities/volumes.ts";
import type { Mount } from "../../../workload.ts";
import { Serial } from "../../common/serial.ts";
import { checkId } from "../../common/spec-check.ts";
import type { HostMount } from "../workload/launch-program.ts";
import { createDrive, driveBytes, driveFolders, removeDrive } from "./drives.ts";
import type { RemoteDrives } from "./remote-drives.ts";
import { createVolume, destroyVolume, exposeVolume, observeVolume, type VolumeStore } from "./volumes.ts";

export interface StorageOptions {
  volumes: VolumeStore;
  /** Folder of the drives. */
  drives: string;
  remote: RemoteDrives;
  /** Uids of the workloads that have a volume. */
  usersOf: (volume: string) => string[];
}

interface DriveMount {
  source: Extract<Mount["source"], { drive: string }>;
  readOnly?: boolean;
}

/** Sources of mounts on the host, valid until they are released. */
export interface Exposed {
  hostMounts: HostMount[];
  release: () => Promise<void>;
}

export class Storage {
  readonly #options: StorageOptions;
  readonly #serial = new Serial();

  readonly volumes: Volumes = {
    create: (spec) =>
      this.#serial.run(`volume ${spec.id}`, async () => {
        checkId(spec.id);
        return createVolume(this.#options.volumes, spec);
      }),
    observe: async (id) => {
      checkId(id);
      return observeVolume(this.#options.volumes, id);
    },
    destroy: (id) =>
      this.#serial.run(`volume ${id}`, async () => {
        checkId(id);
        if (this.#options.usersOf(id).length > 0) throw inUse(id);
        await destroyVolume(this.#options.volumes, id);
      }),
  };

  readonly drives: Drives = {
    create: (id, options) =>
      this.#serial.run(`drive ${id}`, async () => {
        checkId(id);
        await createDrive(this.#options.drives, id, options);
      }),
    bytes: async (id) => driveBytes(this.#options.drives, id),
    folders: async (id) => {
      checkId(id);
      return driveFolders(this.#options.drives, id);
    },
    destroy: async (id) => {
      checkId(id);
      await removeDrive(this.#options.drives, id);
    },
  };

  constructor(options: StorageOptions) {
    this.#options = options;
  }

  /** Runs the work while no workload can take the volume and nothing else changes it. */
  exclusive<T>(volume: string, work: () => Promise<T>): Promise<T> {
    return this.#serial.run(`volume ${volume}`, work);
  }

  /** The host folder of a drive as a workload has it mounted. */
  driveDir({ source, readOnly = false }: DriveMount): string {
    const { drive, node } = source;
    return node === undefined
      ? join(this.#options.drives, drive)
      : this.#options.remote.pathOf({ ...source, node }, readOnly);
  }

  /** False for a drive of another node that nothing serves any more. */
  async isAlive({ source, readOnly = false }: Mount): Promise<boolean> {
    if (!("drive" in source) || source.node === undefined) return true;
    return this.#options.remote.isAlive({ ...source, node: source.node }, readOnly);
  }

  /** Lets go of drives of other nodes that no workload has. */
  sweep(): Promise<void> {
    return this.#options.remote.sweep();
  }

  /** Finds the mounts' sources on the host. Locks each volume meanwhile, so that two creates cannot both take it. */
  async expose(uid: string, mounts: Mount[]): Promise<Exposed> {
    const releases: (() => Promise<void>)[] = [];
    const release = async (): Promise<void> => {
      for (const each of releases.splice(0).reverse()) await each();
    };
    try {
      const hostMounts: HostMount[] = [];
      for (const mount of mounts) hostMounts.push(await this.#exposeOne(uid, mount, releases));
      return { hostMounts, release };
    } catch (error) {
      await release();
      throw error;
    }
  }

  async #exposeOne(
    uid: string,
    { source, path, readOnly = false }: Mount,
    releases: (() => Promise<void>)[],
  ): Promise<HostMount> {
    if ("drive" in source && source.node !== undefined) {
      const taken = await this.#options.remote.take({ ...source, node: source.node }, readOnly);
      releases.push(taken.release);
      return { base: taken.path, path, readOnly };
    }
    if ("drive" in source) {
      const below = source.path === undefined ? {} : { below: source.path };
      return { base: this.driveDir({ source }), ...below, path, readOnly };
    }
    const letNextIn = await this.#serial.hold(`volume ${source.volume}`);
    releases.push(async () => letNextIn());
    if (this.#options.usersOf(source.volume).some((user) => user !== uid)) throw inUse(source.volume);
    const exposed = await exposeVolume(this.#options.volumes, source.volume);
    releases.push(exposed.release);
    return { base: exposed.path, path, readOnly };
  }
}

const inUse = (volume: string): PlatformError => new PlatformError("conflict", `The volume ${volume} is in use.`);
