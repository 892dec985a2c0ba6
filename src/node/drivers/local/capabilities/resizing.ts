/** New limits for workloads of this machine that run or are frozen. */
import { PlatformError } from "../../../../contract/errors.ts";
import type { Resizing } from "../../../capabilities/resizing.ts";
import type { Limits, Observed } from "../../../workload.ts";
import { belowUse } from "../../common/below-use.ts";
import type { Serial } from "../../common/serial.ts";
import { checkLimits } from "../../common/spec-check.ts";
import { groupLimits } from "../gvisor/guest-limits.ts";
import { freezeCgroup, heldBytes, isFrozen, reclaimDownTo, setCgroupLimits } from "../machine/cgroup.ts";
import type { Machine } from "../machine/machine.ts";
import type { Fleet } from "../workload/fleet.ts";
import { enter } from "../workload/launch.ts";
import type { Workload } from "../workload/workload.ts";

export class LocalResizing implements Resizing {
  readonly #fleet: Fleet;
  /** Calls on one workload, one after the other. */
  readonly #serial: Serial;
  readonly #machine: Machine;

  constructor(fleet: Fleet, serial: Serial, machine: Machine) {
    this.#fleet = fleet;
    this.#serial = serial;
    this.#machine = machine;
  }

  resize(uid: string, limits: Limits): Promise<Observed> {
    return this.#serial.run(uid, async () => {
      checkLimits(limits);
      const workload = this.#fleet.known(uid);
      const { record } = workload;
      if (!workload.alive) throw new PlatformError("conflict", "The workload has ended.");
      if (record.hibernated) throw onDisk();
      const before = record.limits;
      const wanted = { ...before, ...limits };
      await (wanted.memoryMb < before.memoryMb ? shrink(workload, wanted) : grow(workload, wanted));
      if (wanted.memoryMb !== before.memoryMb) await this.#resizeSharedMemory(workload);
      return workload.observe();
    });
  }

  /** The size of /dev/shm inside gVisor is fixed at its start. */
  async #resizeSharedMemory({ record }: Workload): Promise<void> {
    if (record.grade === "vm-like") return;
    // Refused by the kernel while more lies in /dev/shm than its new size; the memory limit holds all the same.
    await enter(this.#machine, record, { memoryMb: record.limits.memoryMb }).catch(() => {});
  }
}

/**
 * A server that is killed in the middle leaves a record with at least the memory that the control group allows, so the
 * next server, which holds the workload to its record, takes no memory away from the processes.
 */
async function grow(workload: Workload, limits: Limits): Promise<void> {
  const { record } = workload;
  const before = record.limits;
  workload.recordLimits(limits);
  try {
    setCgroupLimits(record.cgroup, groupLimits(record, limits));
  } catch (error) {
    workload.recordLimits(before);
    throw error;
  }
}

/** The workload is held still meanwhile: with version 2, a limit below what is in use kills processes. */
async function shrink(workload: Workload, limits: Limits): Promise<void> {
  const { record } = workload;
  const { cgroup } = record;
  const bytes = limits.memoryMb * 1024 * 1024;
  const isHeld = isFrozen(cgroup) === false && (await freezeCgroup(cgroup, true));
  try {
    const held = heldBytes(cgroup);
    if (held > bytes) throw belowUse(limits, held);
    const left = reclaimDownTo(cgroup, bytes);
    if (left > bytes) throw belowUse(limits, left);
    setCgroupLimits(cgroup, groupLimits(record, limits));
  } catch (error) {
    setCgroupLimits(cgroup, groupLimits(record, record.limits));
    throw error;
  } finally {
    if (isHeld) await freezeCgroup(cgroup, false);
  }
  workload.recordLimits(limits);
}

const onDisk = (): PlatformError =>
  new PlatformError("conflict", "The memory of the workload lies on disk. Wake it with a request, then resize it.");
