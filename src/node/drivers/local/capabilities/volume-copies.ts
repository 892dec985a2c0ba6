/** Copies of volumes of this machine. */
import type { Readable } from "node:stream";
import { PlatformError } from "../../../../contract/errors.ts";
import type { VolumeCopies } from "../../../capabilities/volume-copies.ts";
import type { Volume } from "../../../capabilities/volumes.ts";
import type { Serial } from "../../common/serial.ts";
import { checkId } from "../../common/spec-check.ts";
import type { Storage } from "../storage/storage.ts";
import type { CopyTree } from "../storage/tree-copy.ts";
import { copyVolume, listCopies, observeCopy, openCopies, packCopy } from "../storage/volume-copies.ts";
import { createVolume, destroyVolume, observeVolume, readVolume, type VolumeStore } from "../storage/volumes.ts";
import type { Fleet } from "../workload/fleet.ts";

export interface LocalVolumeCopiesOptions {
  /** Folder of the copies. */
  dir: string;
  volumes: VolumeStore;
  storage: Storage;
  fleet: Fleet;
  /** Calls on one workload, one after the other. */
  serial: Serial;
  copyTree: CopyTree;
}

export class LocalVolumeCopies implements VolumeCopies {
  readonly #options: LocalVolumeCopiesOptions;
  /** Copies that are being read, by the stream that reads them. */
  readonly #packing = new Map<Readable, string>();

  constructor(options: LocalVolumeCopiesOptions) {
    this.#options = options;
  }

  open(): Promise<void> {
    return openCopies(this.#options.dir);
  }

  readonly take: VolumeCopies["take"] = async (volume, id) => {
    const { dir, storage } = this.#options;
    checkId(id);
    return storage.exclusive(`copy ${id}`, async () => {
      const there = await observeCopy({ dir }, id);
      if (there) return there;
      await this.#copyVolume(volume, { dir, id });
      const made = await observeCopy({ dir }, id);
      if (!made) throw new PlatformError("unavailable", "The copy was removed while it was made. Try again.");
      return made;
    });
  };

  readonly restore: VolumeCopies["restore"] = async (volume, source) => {
    const { dir, volumes, storage, copyTree } = this.#options;
    checkId(volume);
    return storage.exclusive(volume, async () => {
      const there = await observeVolume(volumes, volume);
      if (there) return there;
      const to = { dir: volumes.dir, id: volume };
      if ("volume" in source) return this.#copyVolume(source.volume, to);
      checkId(source.copy);
      return copyVolume({ dir, id: source.copy, isMounted: false }, to, copyTree);
    });
  };

  readonly fill: VolumeCopies["fill"] = async (spec) => {
    const { volumes, storage } = this.#options;
    checkId(spec.id);
    return storage.exclusive(spec.id, async () => {
      if (readVolume(volumes, spec.id)) throw new PlatformError("conflict", "The volume has files already.");
      return createVolume(volumes, spec);
    });
  };

  readonly pack: VolumeCopies["pack"] = async (id) => {
    checkId(id);
    const tar = await packCopy({ dir: this.#options.dir }, id);
    this.#packing.set(tar, id);
    tar.once("close", () => this.#packing.delete(tar));
    return tar;
  };

  readonly remove: VolumeCopies["remove"] = async (id) => {
    checkId(id);
    if ([...this.#packing.values()].includes(id)) throw new PlatformError("conflict", `The copy ${id} is being read.`);
    await destroyVolume({ dir: this.#options.dir }, id);
  };

  readonly list: VolumeCopies["list"] = async () => listCopies({ dir: this.#options.dir });

  /** A file system of its own is frozen; a plain folder has no such state, so its users are held still. */
  #copyVolume(volume: string, to: { dir: string; id: string }): Promise<Volume> {
    const { volumes, storage, fleet, copyTree } = this.#options;
    checkId(volume);
    return storage.exclusive(volume, async () => {
      const isSized = readVolume(volumes, volume)?.sized ?? false;
      const from = { dir: volumes.dir, id: volume, isMounted: true };
      const users = isSized ? [] : fleet.usersOf(volume);
      return this.#still(users, () => copyVolume(from, to, copyTree));
    });
  }

  async #still<T>(uids: readonly string[], work: () => Promise<T>): Promise<T> {
    const { fleet, serial } = this.#options;
    const [uid, ...others] = uids;
    if (uid === undefined) return work();
    return serial.run(uid, async () => {
      const workload = fleet.find(uid);
      const isRunning = workload?.observe().state === "running";
      if (isRunning) await workload.setFrozen(true);
      try {
        return await this.#still(others, work);
      } finally {
        if (isRunning) await workload.setFrozen(false);
      }
    });
  }
}
