/** Freezes workloads of this machine, and lets the kernel write out their pages afterwards. */
import type { Freezing } from "../../../capabilities/freezing.ts";
import type { Observed } from "../../../workload.ts";
import type { Serial } from "../../common/serial.ts";
import { reclaim } from "../machine/cgroup.ts";
import type { Fleet } from "../workload/fleet.ts";

export class LocalFreezing implements Freezing {
  readonly #fleet: Fleet;
  /** Calls on one workload, one after the other. */
  readonly #serial: Serial;
  readonly #reclaiming = new Set<Promise<void>>();

  constructor(fleet: Fleet, serial: Serial) {
    this.#fleet = fleet;
    this.#serial = serial;
  }

  freeze(uid: string): Promise<Observed> {
    return this.#serial.run(uid, async () => {
      const workload = this.#fleet.known(uid);
      const observed = await workload.setFrozen(true);
      // Not awaited: a thaw must not wait until pages are written out.
      const reclaiming = reclaim(workload.record.cgroup).finally(() => this.#reclaiming.delete(reclaiming));
      this.#reclaiming.add(reclaiming);
      return observed;
    });
  }

  thaw(uid: string): Promise<Observed> {
    return this.#serial.run(uid, () => this.#fleet.known(uid).setFrozen(false));
  }

  /** Resolves when no pages are being written out any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#reclaiming);
  }
}
