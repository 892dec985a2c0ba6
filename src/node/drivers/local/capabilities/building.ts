/** Images made on this machine, as its driver offers them. */
import { PlatformError } from "../../../../contract/errors.ts";
import type { Building } from "../../../capabilities/building.ts";
import type { Image, ImageDocument } from "../../../capabilities/images.ts";
import type { Serial } from "../../common/serial.ts";
import { commitWorkload, type DiskAccess, deriveImage } from "../images/committed.ts";
import type { ImageStore } from "../images/images.ts";
import type { Fleet } from "../workload/fleet.ts";
import { needsIsolation } from "./needs-isolation.ts";

export interface LocalBuildingOptions {
  store: ImageStore;
  disks: DiskAccess;
  fleet: Fleet;
  /** Calls on one workload, one after the other. */
  serial: Serial;
}

export class LocalBuilding implements Building {
  readonly #options: LocalBuildingOptions;

  constructor(options: LocalBuildingOptions) {
    this.#options = options;
  }

  async derive(name: string, from: string | null, document: ImageDocument): Promise<Image> {
    return deriveImage(this.#options.store, name, from, document);
  }

  commit(uid: string, name: string, document: ImageDocument, mountPoints: readonly string[]): Promise<Image> {
    const { store, disks, fleet, serial } = this.#options;
    return serial.run(uid, async () => {
      const workload = fleet.known(uid);
      if (workload.record.grade === "none") throw needsIsolation();
      if (workload.alive) throw new PlatformError("conflict", "The workload has not ended.");
      return commitWorkload({ store, disks }, workload, name, document, mountPoints);
    });
  }
}
