/** Volumes and drives of this node, and how they are mounted into its workloads. */
import { PlatformError } from "../../../../contract/errors.ts";
import type { Drives } from "../../../capabilities/drives.ts";
import type { Volume, Volumes } from "../../../capabilities/volumes.ts";
import type { Mount } from "../../../workload.ts";
import { Serial } from "../../common/serial.ts";
import { checkId } from "../../common/spec-check.ts";
import type { ContainerMount } from "../workload/container.ts";
import type { VolumeStore } from "./volumes.ts";

export interface StorageOptions {
  store: VolumeStore;
  /** Uids of the workloads that have a volume. */
  usersOf: (volume: string) => Promise<string[]>;
}

/** Mounts of a container that is about to be made, held until they are released. */
export interface Held {
  mounts: ContainerMount[];
  release: () => void;
}

export class Storage {
  readonly #options: StorageOptions;
  readonly #serial = new Serial();

  readonly volumes: Volumes = {
    create: ({ id, sizeMb, from }) =>
      this.#serial.run(`volume ${id}`, async () => {
        checkId(id);
        await this.#options.store.create("volume", id, sizeMb, from);
        const made = await this.#observe(id);
        if (!made) throw new PlatformError("unavailable", "The volume was removed while it was made. Try again.");
        return made;
      }),
    observe: async (id) => {
      checkId(id);
      return this.#observe(id);
    },
    destroy: (id) =>
      this.#serial.run(`volume ${id}`, async () => {
        checkId(id);
        if ((await this.#options.usersOf(id)).length > 0) throw inUse(id);
        await this.#options.store.destroy("volume", id);
      }),
  };

  readonly drives: Drives = {
    create: (id, { from } = {}) =>
      this.#serial.run(`drive ${id}`, async () => {
        checkId(id);
        await this.#options.store.create("drive", id, 0, from);
      }),
    bytes: async (id) => {
      checkId(id);
      return this.#options.store.bytes("drive", id);
    },
    folders: async () => null,
    destroy: (id) =>
      this.#serial.run(`drive ${id}`, async () => {
        checkId(id);
        await this.#options.store.destroy("drive", id);
      }),
  };

  constructor(options: StorageOptions) {
    this.#options = options;
  }

  async #observe(id: string): Promise<Volume | null> {
    const { store } = this.#options;
    const [found, usedBytes] = [await store.find("volume", id), await store.bytes("volume", id)];
    return found && { id, sizeMb: found.sizeMb, usedBytes: usedBytes ?? 0, sized: false };
  }

  /** Locks each volume until the container is made, so that two creates cannot both take it. */
  async hold(uid: string, mounts: readonly Mount[]): Promise<Held> {
    const releases: (() => void)[] = [];
    const release = (): void => {
      for (const each of releases.splice(0)) each();
    };
    try {
      const held: ContainerMount[] = [];
      for (const mount of mounts) held.push(await this.#holdOne(uid, mount, releases));
      return { mounts: held, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #holdOne(
    uid: string,
    { source, path, readOnly = false }: Mount,
    releases: (() => void)[],
  ): Promise<ContainerMount> {
    const { store, usersOf } = this.#options;
    if ("drive" in source) {
      if (source.node !== undefined)
        throw new PlatformError("unprocessable", "The driver docker mounts no drives of other nodes.");
      if (source.path !== undefined && source.path !== "/") throw wholeDrive();
      if (!(await store.find("drive", source.drive))) throw missing("drive", source.drive);
      return store.mount("drive", source.drive, path, readOnly);
    }
    releases.push(await this.#serial.hold(`volume ${source.volume}`));
    if ((await usersOf(source.volume)).some((user) => user !== uid)) throw inUse(source.volume);
    if (!(await store.find("volume", source.volume))) throw missing("volume", source.volume);
    return store.mount("volume", source.volume, path, readOnly);
  }
}

const inUse = (volume: string): PlatformError => new PlatformError("conflict", `The volume ${volume} is in use.`);

const missing = (kind: string, id: string): PlatformError =>
  new PlatformError("bad_request", `There is no ${kind} ${id}.`);

/** The engine would follow a link that a workload put in the folder's place, out of the drive. */
const wholeDrive = (): PlatformError =>
  new PlatformError("unprocessable", "The Docker driver mounts whole drives, not a folder of one.");
