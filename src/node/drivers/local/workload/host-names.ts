/**
 * Sets host names of running workloads, and with them the size of shared memory. That takes a few system calls in a
 * separate process; changes requested while one such process runs are batched into the next.
 */

import type { Program } from "../calls/program.ts";
import type { Spawner } from "../calls/spawner.ts";
import { AT_FDCWD, CLONE, O_CLOEXEC } from "../calls/syscalls.ts";
import { resizeSharedMemory } from "./launch-program.ts";

export interface HostName {
  /** Host pid of the workload's first process. */
  pid: number;
  name: string;
  /** The memory limit, when it differs from the one at launch. */
  memoryMb?: number;
}

interface Wanted extends HostName {
  settle: (failure?: unknown) => void;
}

/** Most names per process; a program could hold far more. */
const BATCH_MAX = 64;

export class HostNames {
  readonly #spawner: Pick<Spawner, "run">;
  #wanted: Wanted[] = [];
  #working = false;

  constructor(spawner: Pick<Spawner, "run">) {
    this.#spawner = spawner;
  }

  set(name: HostName): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (failure?: unknown): void => (failure === undefined ? resolve() : reject(failure));
      this.#wanted.push({ ...name, settle });
      if (!this.#working) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#working = true;
    // Wait one event-loop turn, so that names requested together share the first process.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#wanted.length > 0) await this.#together(this.#wanted.splice(0, BATCH_MAX));
    this.#working = false;
  }

  /** Applies a batch in one process. One ended workload fails the whole batch, so each name is then tried alone. */
  async #together(batch: Wanted[]): Promise<void> {
    try {
      await this.#spawner.run("The change of host names", (program) => nameSteps(program, batch));
      for (const { settle } of batch) settle();
    } catch (error) {
      const [only, ...others] = batch;
      if (others.length === 0) return only?.settle(error);
      for (const each of batch) await this.#together([each]);
    }
  }
}

function nameSteps(program: Program, names: HostName[]): void {
  const own = program.open("openat", [AT_FDCWD, "/proc/self/ns/mnt", O_CLOEXEC, 0], "open this mount namespace");
  for (const { pid, name, memoryMb } of names) {
    const path = `/proc/${pid}/ns/uts`;
    const uts = program.open("openat", [AT_FDCWD, path, O_CLOEXEC, 0], "open the uts namespace");
    program.step("setns", [uts, CLONE.NEWUTS], "enter the uts namespace");
    program.step("sethostname", [name, Buffer.byteLength(name)], "set the host name");
    program.close(uts);
    if (memoryMb === undefined) continue;
    const mnt = program.open("openat", [AT_FDCWD, `/proc/${pid}/ns/mnt`, O_CLOEXEC, 0], "open the mount namespace");
    program.step("setns", [mnt, CLONE.NEWNS], "enter the mount namespace");
    resizeSharedMemory(program, memoryMb);
    program.step("setns", [own, CLONE.NEWNS], "leave the mount namespace");
    program.close(mnt);
  }
}
