/** Snapshots of workloads of this machine, and the files that new workloads start from. */
import { join } from "node:path";
import { PlatformError } from "../../../../contract/errors.ts";
import type { Snapshot, Snapshots } from "../../../capabilities/snapshots.ts";
import type { Serial } from "../../common/serial.ts";
import { checkId } from "../../common/spec-check.ts";
import { keepMemory, keepShared, shareMemory } from "../gvisor/copy.ts";
import {
  forgetSnapshot,
  type KeepMore,
  listSnapshots,
  readSnapshot,
  type SnapshotRecord,
  sweepSnapshots,
  takeSnapshot,
} from "../storage/snapshots.ts";
import type { CopyTree } from "../storage/tree-copy.ts";
import type { Fleet } from "../workload/fleet.ts";
import type { RootPart } from "../workload/launch-program.ts";
import type { WorkloadRecord } from "../workload/record.ts";
import type { Workload } from "../workload/workload.ts";
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
    return this.#take(uid, id, async (workload) => {
      const running = workload.observe().state === "running";
      if (running) await workload.setFrozen(true);
      try {
        return await this.#copied(workload, id);
      } finally {
        if (running) await workload.setFrozen(false);
      }
    });
  }

  /** See `MemorySnapshots.take`. */
  takeWithMemory(uid: string, id: string): Promise<Snapshot> {
    const { copyTree } = this.#options;
    return this.#take(uid, id, async (workload) => {
      refuseMemory(workload.record);
      return workload.record.hibernated
        ? this.#copied(workload, id, async (snapshot, copyFiles) => {
            await copyFiles();
            return shareMemory(workload.dir, snapshot) + (await keepShared(workload.dir, snapshot, copyTree));
          })
        : this.#copied(workload, id, async (snapshot, copyFiles) => {
            let bytes = 0;
            const written = await workload.copyMemory(async () => {
              const shared = keepShared(workload.dir, snapshot, copyTree);
              await Promise.all([copyFiles(), shared]);
              bytes = await shared;
            });
            return bytes + keepMemory(written, snapshot);
          });
    });
  }

  #take(uid: string, id: string, take: (workload: Workload) => Promise<SnapshotRecord>): Promise<Snapshot> {
    const { dir, fleet, serial } = this.#options;
    return serial.run(uid, async () => {
      checkId(id);
      const workload = fleet.known(uid);
      if (workload.record.grade === "none") throw needsIsolation();
      return publicSnapshot(readSnapshot(dir, id) ?? (await take(workload)));
    });
  }

  async #copied(workload: Workload, id: string, more?: KeepMore): Promise<SnapshotRecord> {
    const { dir, copyTree, expose } = this.#options;
    const { image, imageDigest, parts, disk } = workload.record;
    const exposed = disk ? await expose(workload.dir) : null;
    try {
      const source = { dir: workload.dir, image, imageDigest, parts };
      return await takeSnapshot(dir, id, source, copyTree, more);
    } finally {
      await exposed?.release();
    }
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
    return this.#found(id).parts;
  }

  /** The folder whose memory a workload goes on from. */
  memoryOf(id: string): string {
    if (!this.#found(id).memory) throw new PlatformError("bad_request", `Snapshot ${id} holds no memory.`);
    return join(this.#options.dir, id);
  }

  #found(id: string): SnapshotRecord {
    checkId(id);
    const found = readSnapshot(this.#options.dir, id);
    if (!found) throw new PlatformError("bad_request", `There is no snapshot ${id}.`);
    return found;
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

const publicSnapshot = ({ id, image, sizeBytes, createdAt, memory }: SnapshotRecord): Snapshot => ({
  id,
  image,
  sizeBytes,
  createdAt,
  ...(memory ? { memory } : {}),
});

/** Programs may have files of a mount open, and a copy has no such mount. */
function refuseMemory({ grade, mounts }: WorkloadRecord): void {
  if (grade !== "vm-like")
    throw new PlatformError(
      "unprocessable",
      `A snapshot of memory needs isolation 'vm-like', and the workload has '${grade}'.`,
    );
  const own = mounts.find(({ platform }) => !platform);
  if (own)
    throw new PlatformError(
      "unprocessable",
      `A snapshot of memory needs a workload without volumes and drives, and one is mounted at ${own.path}.`,
    );
}
