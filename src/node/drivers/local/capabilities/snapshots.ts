/** Snapshots of workloads of this machine, and the files that new workloads start from. */
import { PlatformError } from "../../../../contract/errors.ts";
import type { Snapshot, Snapshots } from "../../../capabilities/snapshots.ts";
import type { Serial } from "../../common/serial.ts";
import { checkId } from "../../common/spec-check.ts";
import {
  forgetSnapshot,
  listSnapshots,
  readSnapshot,
  type SnapshotRecord,
  sweepSnapshots,
  takeSnapshot,
} from "../storage/snapshots.ts";
import type { CopyTree } from "../storage/tree-copy.ts";
import type { Fleet } from "../workload/fleet.ts";
import type { RootPart } from "../workload/launch-program.ts";
import { needsIsolation } from "./needs-isolation.ts";

export interface LocalSnapshotsOptions {
  /** Folder of the snapshots. */
  dir: string;
  fleet: Fleet;
  /** Calls on one workload, one after the other. */
  serial: Serial;
  copyTree: CopyTree;
  /** Shows the disk of a workload on the host until `release`. */
  expose(dir: string): Promise<{ release: () => Promise<void> }>;
}

export class LocalSnapshots implements Snapshots {
  readonly #options: LocalSnapshotsOptions;

  constructor(options: LocalSnapshotsOptions) {
    this.#options = options;
  }

  take(uid: string, id: string): Promise<Snapshot> {
    const { dir, fleet, serial, copyTree, expose } = this.#options;
    return serial.run(uid, async () => {
      checkId(id);
      const workload = fleet.known(uid);
      if (workload.record.grade === "none") throw needsIsolation();
      const there = readSnapshot(dir, id);
      if (there) return publicSnapshot(there);
      const running = workload.observe().state === "running";
      if (running) await workload.setFrozen(true);
      const { image, imageDigest, parts, disk } = workload.record;
      let exposed: { release: () => Promise<void> } | null = null;
      try {
        exposed = disk ? await expose(workload.dir) : null;
        const source = { dir: workload.dir, image, imageDigest, parts };
        return publicSnapshot(await takeSnapshot(dir, id, source, copyTree));
      } finally {
        await exposed?.release();
        if (running) await workload.setFrozen(false);
      }
    });
  }

  async remove(id: string): Promise<void> {
    checkId(id);
    forgetSnapshot(this.#options.dir, id);
    await this.sweep();
  }

  async list(): Promise<Snapshot[]> {
    return listSnapshots(this.#options.dir).map(publicSnapshot);
  }

  /** What a workload made from the snapshot stands on. */
  partsOf(id: string): RootPart[] {
    checkId(id);
    const found = readSnapshot(this.#options.dir, id);
    if (!found) throw new PlatformError("bad_request", `There is no snapshot ${id}.`);
    return found.parts;
  }

  /** What all snapshots together stand on. */
  partsKept(): RootPart[] {
    return listSnapshots(this.#options.dir).flatMap(({ parts }) => parts);
  }

  /** Removes the files of forgotten snapshots that no workload stands on any more. */
  sweep(): Promise<void> {
    return sweepSnapshots(this.#options.dir, this.#options.fleet.partsInUse());
  }
}

const publicSnapshot = ({ id, image, sizeBytes, createdAt }: SnapshotRecord): Snapshot => ({
  id,
  image,
  sizeBytes,
  createdAt,
});
