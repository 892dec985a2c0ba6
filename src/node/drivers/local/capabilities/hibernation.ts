/** Sleep on disk, for workloads of this machine that run in gVisor. */
import { PlatformError } from "../../../../contract/errors.ts";
import type { Hibernation } from "../../../capabilities/hibernation.ts";
import type { Observed } from "../../../workload.ts";
import type { Serial } from "../../common/serial.ts";
import type { Fleet } from "../workload/fleet.ts";

export class LocalHibernation implements Hibernation {
  readonly #fleet: Fleet;
  /** Calls on one workload, one after the other. */
  readonly #serial: Serial;
  readonly #runsc: string | null;

  constructor(fleet: Fleet, serial: Serial, runsc: string | null) {
    this.#fleet = fleet;
    this.#serial = serial;
    this.#runsc = runsc;
  }

  hibernate(uid: string): Promise<Observed> {
    return this.#serial.run(uid, async () => {
      const workload = this.#fleet.known(uid);
      if (workload.record.grade !== "vm-like" || this.#runsc === null) throw needsGuest(workload.record.grade);
      return workload.hibernate();
    });
  }
}

const needsGuest = (grade: string): PlatformError =>
  new PlatformError("unprocessable", `Sleep on disk needs isolation 'vm-like', and the workload has '${grade}'.`);
