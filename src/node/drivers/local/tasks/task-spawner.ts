/**
 * Starts the programs of tasks in one slot. Like the spawner of workloads it is one tiny process that forks itself for
 * each program it reads; unlike there, they report over the connection that they inherit, and it is in the slot's
 * control groups, as all that it starts is from its first moment: to move a process there the kernel holds up every fork
 * and exit of the machine, for milliseconds. It ends with the server; what it started lives on.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { Program } from "../calls/program.ts";
import { type Arch, PROGRAM_BASE, PROGRAM_BYTES_MAX } from "../calls/stepper.ts";
import { AT_FDCWD, SIGCHLD } from "../calls/syscalls.ts";
import { joinControlGroups } from "../workload/launch-program.ts";
import { TASK_PROCESS } from "./task-lives.ts";
import { readTaskReports, type TaskReport } from "./task-report.ts";

/** Where a task's program lies in the memory of its process; the spawner's own is below. */
export const TASK_BASE = PROGRAM_BASE + PROGRAM_BYTES_MAX;
/** It ends with its pipe; one that a debugger or the machine holds back is not waited for. */
const STOP_WAIT_MS = 5_000;

export interface TaskSpawnerOptions {
  /** Folder of this life of the server; it stands in the list of processes, so that the next one finds what is left. */
  dir: string;
  executable: string;
  arch: Arch;
  /** `cgroup.procs` files to join. */
  cgroups: string[];
  onReport(report: TaskReport): void;
}

export class TaskSpawner {
  readonly #options: TaskSpawnerOptions;
  #process: ChildProcess | null = null;

  constructor(options: TaskSpawnerOptions) {
    this.#options = options;
  }

  /** 0 before the first program. */
  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  start(program: Buffer): void {
    const length = Buffer.alloc(8);
    length.writeBigInt64LE(BigInt(program.length));
    // Eight more bytes tell that all of it has come, and not the end of the server in the middle.
    this.#started().stdin?.write(Buffer.concat([length, program, Buffer.alloc(8)]));
  }

  /** Whether the server waits for reports before it may end. */
  hold(on: boolean): void {
    const reports = this.#process?.stdout as { ref?(): void; unref?(): void } | null | undefined;
    if (on) reports?.ref?.();
    else reports?.unref?.();
  }

  async stop(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    const exited = once(child, "exit");
    child.stdin?.end();
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_WAIT_MS);
    await exited;
    clearTimeout(timer);
    child.stdout?.destroy();
  }

  #started(): ChildProcess {
    if (this.#process && this.#process.exitCode === null && this.#process.signalCode === null) return this.#process;
    const { dir, executable, arch, cgroups, onReport } = this.#options;
    const file = join(dir, "spawner");
    writeFileSync(file, spawnerProgram(arch, cgroups));
    const fd = openSync(file, "r");
    unlinkSync(file);
    const child = spawn(executable, [dir], {
      argv0: TASK_PROCESS,
      detached: true,
      env: {},
      stdio: ["pipe", "pipe", "ignore", fd],
    });
    closeSync(fd);
    let rest: Buffer = Buffer.alloc(0);
    child.stdout?.on("data", (chunk: Buffer) => {
      const read = readTaskReports(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]));
      rest = read.rest;
      for (const report of read.reports) onReport(report);
    });
    child.stdin?.on("error", () => {}); // it died; tasks that do not start in time say so, and the next one starts anew
    child.on("error", () => {}); // the same
    child.unref();
    (child.stdin as Writable & { unref?: () => void }).unref?.();
    this.#process = child;
    return child;
  }
}

/** Reads a program and forks for it, for ever; ends with the pipe. */
function spawnerProgram(arch: Arch, cgroups: string[]): Buffer {
  const program = new Program(arch);
  const [next, body, end] = [program.label(), program.label(), program.label()];
  const WAIT_ALL = 0x100;
  const SIGNAL_IGNORE = [1, 0, 0, 0];
  const scratch = program.words([0]);
  program.step("close_range", [2, 0xffffffff, 0], "close what was inherited");
  for (const _ of [2, 3, 4, 5]) program.step("openat", [AT_FDCWD, "/dev/null", 2, 0], "open nothing");
  // Watchers are in the group of who may use too much memory, and must be there to tell.
  program.tryWriteFile("/proc/self/oom_score_adj", "-1000", "be spared");
  joinControlGroups(program, { cgroups });
  program.step("rt_sigaction", [SIGCHLD, program.words(SIGNAL_IGNORE), 0, 8], "let children vanish");
  const [PROT_READ_WRITE, PRIVATE_FIXED_ANONYMOUS] = [3, 0x32];
  program.step("mmap", [TASK_BASE, PROGRAM_BYTES_MAX, PROT_READ_WRITE, PRIVATE_FIXED_ANONYMOUS, -1, 0], "make room");
  program.place(next);
  // The length goes straight into the third argument of the following step.
  program.step("recvfrom", [0, { label: body, word: 3 }, 8, WAIT_ALL, 0, 0], "read a length", { onZero: end });
  program.place(body);
  program.step("recvfrom", [0, TASK_BASE, 0, WAIT_ALL, 0, 0], "read a program", { onZero: end });
  program.step("recvfrom", [0, scratch, 8, WAIT_ALL, 0, 0], "read the mark behind it", { onZero: end });
  program.step("clone", [SIGCHLD], "fork", { onValue: next, onZero: TASK_BASE });
  program.place(end);
  program.step("exit_group", [0], "end");
  return program.encode();
}
