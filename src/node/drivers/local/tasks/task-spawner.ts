/**
 * Starts the programs of tasks in one slot. Like the spawner of workloads, it is one tiny process that forks itself for
 * each program it reads. Unlike that one, its programs report over an inherited connection, and it is a member of the
 * slot's control groups, so that its children are members from their first moment: moving a process into a group makes
 * the kernel hold up every fork and exit of the machine, for milliseconds. It exits with the server; its children live
 * on.
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

/** Address of a task's program in its process; the spawner's own program lies below. */
export const TASK_BASE = PROGRAM_BASE + PROGRAM_BYTES_MAX;
/** Time to exit after its pipe is closed; then SIGKILL, since a debugger or the machine may hold it back. */
const STOP_WAIT_MS = 5_000;

export interface TaskSpawnerOptions {
  /** Folder of this run of the server. Part of the arguments, so that the next run finds leftover processes. */
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

  /** The spawner's pid; 0 before the first program. */
  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  start(program: Buffer): void {
    const length = Buffer.alloc(8);
    length.writeBigInt64LE(BigInt(program.length));
    // Eight trailing bytes show that the program is complete, in case the server dies in the middle of the write.
    this.#started().stdin?.write(Buffer.concat([length, program, Buffer.alloc(8)]));
  }

  /** Whether open reports keep the server's event loop alive. */
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
    child.stdin?.on("error", () => {}); // it died: tasks time out, and the next program starts a new spawner
    child.on("error", () => {}); // the same
    child.unref();
    (child.stdin as Writable & { unref?: () => void }).unref?.();
    this.#process = child;
    return child;
  }
}

/** Reads programs and forks for each, until the pipe closes. */
function spawnerProgram(arch: Arch, cgroups: string[]): Buffer {
  const program = new Program(arch);
  const [next, body, end] = [program.label(), program.label(), program.label()];
  const WAIT_ALL = 0x100;
  const SIGNAL_IGNORE = [1, 0, 0, 0];
  const scratch = program.words([0]);
  program.step("close_range", [2, 0xffffffff, 0], "close what was inherited");
  for (const _ of [2, 3, 4, 5]) program.step("openat", [AT_FDCWD, "/dev/null", 2, 0], "open nothing");
  // Watchers share a group with a command that may exhaust its memory, and must survive to report that.
  program.tryWriteFile("/proc/self/oom_score_adj", "-1000", "be spared");
  joinControlGroups(program, { cgroups });
  program.step("rt_sigaction", [SIGCHLD, program.words(SIGNAL_IGNORE), 0, 8], "let children vanish");
  const [PROT_READ_WRITE, PRIVATE_FIXED_ANONYMOUS] = [3, 0x32];
  program.step("mmap", [TASK_BASE, PROGRAM_BYTES_MAX, PROT_READ_WRITE, PRIVATE_FIXED_ANONYMOUS, -1, 0], "make room");
  program.place(next);
  // The length is stored as the third argument of the following step.
  program.step("recvfrom", [0, { label: body, word: 3 }, 8, WAIT_ALL, 0, 0], "read a length", { onZero: end });
  program.place(body);
  program.step("recvfrom", [0, TASK_BASE, 0, WAIT_ALL, 0, 0], "read a program", { onZero: end });
  program.step("recvfrom", [0, scratch, 8, WAIT_ALL, 0, 0], "read the mark behind it", { onZero: end });
  program.step("clone", [SIGCHLD], "fork", { onValue: next, onZero: TASK_BASE });
  program.place(end);
  program.step("exit_group", [0], "end");
  return program.encode();
}
