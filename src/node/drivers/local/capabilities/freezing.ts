/** Freezes workloads of this machine, and lets the kernel write out their pages afterwards. */
import type { Freezing } from "../../../capabilities/freezing.ts";
import type { Observed } from "../../../workload.ts";
import type { Serial } from "../../common/serial.ts";
import { reclaim } from "../machine/cgroup.ts";
import type { Storage } from "../storage/storage.ts";
import type { Fleet } from "../workload/fleet.ts";
import type { Workload } from "../workload/workload.ts";

export class LocalFreezing implements Freezing {
  readonly #fleet: Fleet;
  /** Calls on one workload, one after the other. */
  readonly #serial: Serial;
  readonly #storage: Storage;
  readonly #reclaiming = new Set<Promise<void>>();

  constructor(fleet: Fleet, serial: Serial, storage: Storage) {
    this.#storage = storage;
    this.#fleet = fleet;
    this.#serial = serial;
  }

  freeze(uid: string): Promise<Observed> {
    return this.#serial.run(uid, async () => {
      const workload = this.#fleet.known(uid);
      const observed = await workload.setFrozen(true);
      // Not awaited: a thaw must not wait until pages are written out.
      if (workload.record.hibernated) return observed;
      const reclaiming = reclaim(workload.record.cgroup).finally(() => this.#reclaiming.delete(reclaiming));
      this.#reclaiming.add(reclaiming);
      return observed;
    });
  }

  thaw(uid: string): Promise<Observed> {
    return this.#serial.run(uid, async () => {
      const workload = this.#fleet.known(uid);
      return workload.record.hibernated ? this.#wake(workload) : workload.setFrozen(false);
    });
  }

  async #wake(workload: Workload): Promise<Observed> {
    const { hostMounts, release } = await this.#storage.expose(workload.record.uid ?? "", workload.record.mounts);
    try {
      await this.#fleet.wake(workload, hostMounts);
      return workload.observe();
    } finally {
      await release();
    }
  }

  /** Resolves when no pages are being written out any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#reclaiming);
  }
}
