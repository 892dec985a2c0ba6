/**
 * Host names of running workloads, and with them how much shared memory they may have. That is a few system calls, and a
 * process to make them in; names wanted while one such process is under way share the next.
 */

import type { Program } from "../calls/program.ts";
import type { Spawner } from "../calls/spawner.ts";
import { AT_FDCWD, CLONE, O_CLOEXEC } from "../calls/syscalls.ts";
import { resizeSharedMemory } from "./launch-program.ts";

export interface HostName {
  /** Host pid of the workload's first process. */
  pid: number;
  name: string;
  /** Where it is another one than the workload was started with. */
  memoryMb?: number;
}

interface Wanted extends HostName {
  settle: (failure?: unknown) => void;
}

/** Far below what a program may hold. */
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
    // Names of one moment share the first process already.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#wanted.length > 0) await this.#together(this.#wanted.splice(0, BATCH_MAX));
    this.#working = false;
  }

  /** One that has ended meanwhile fails them all, so they are tried one by one then. */
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
