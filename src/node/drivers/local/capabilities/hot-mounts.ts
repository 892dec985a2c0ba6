/** Mounts into running workloads of this machine. */
import { PlatformError } from "../../../../contract/errors.ts";
import type { HotMounts } from "../../../capabilities/hot-mounts.ts";
import type { Mount } from "../../../workload.ts";
import type { Serial } from "../../common/serial.ts";
import { checkMount } from "../../common/spec-check.ts";
import type { Storage } from "../storage/storage.ts";
import type { Fleet } from "../workload/fleet.ts";
import type { Workload } from "../workload/workload.ts";
import { needsIsolation } from "./needs-isolation.ts";

export class LocalHotMounts implements HotMounts {
  readonly #fleet: Fleet;
  /** Calls on one workload, one after the other. */
  readonly #serial: Serial;
  readonly #storage: Storage;

  constructor(fleet: Fleet, serial: Serial, storage: Storage) {
    this.#fleet = fleet;
    this.#serial = serial;
    this.#storage = storage;
  }

  mount(uid: string, mount: Mount): Promise<void> {
    return this.#serial.run(uid, async () => {
      checkMount(mount);
      const workload = this.#fleet.known(uid);
      if (workload.record.grade === "none") throw needsIsolation();
      if (workload.record.grade === "vm-like") throw mountsAtStart();
      const there = workload.record.mounts.find(({ path }) => path === mount.path);
      if (there && sameMount(there, mount)) {
        if (await this.#storage.isAlive(there)) return;
        await this.#unmount(workload, there);
      } else if (there) throw new PlatformError("conflict", `Something else is mounted at ${mount.path}.`);
      const { hostMounts, release } = await this.#storage.expose(uid, [mount]);
      try {
        await workload.mount(mount, hostMounts);
      } finally {
        await release();
      }
    });
  }

  unmount(uid: string, path: string): Promise<boolean> {
    return this.#serial.run(uid, async () => {
      const workload = this.#fleet.known(uid);
      const mount = workload.record.mounts.find((each) => each.path === path);
      if (!mount) return false;
      await this.#unmount(workload, mount);
      await this.#storage.sweep();
      return true;
    });
  }

  async #unmount(workload: Workload, { source, ...mount }: Mount): Promise<void> {
    if ("volume" in source) throw new PlatformError("conflict", "A volume stays attached until the end.");
    const there = workload.record.mounts.find(({ path }) => path === mount.path);
    if (there) await workload.unmount(there, this.#storage.driveDir({ source, ...mount }));
  }
}

const mountsAtStart = (): PlatformError =>
  new PlatformError("unprocessable", "A workload with isolation 'vm-like' gets its mounts when it starts, not later.");

const sameMount = (a: Mount, b: Mount): boolean =>
  JSON.stringify(a.source) === JSON.stringify(b.source) && (a.readOnly ?? false) === (b.readOnly ?? false);
