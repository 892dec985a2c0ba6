/**
 * Runs programs of system calls, each in a process of its own.
 *
 * Forking the server costs milliseconds, and more the larger it has grown. So one tiny process (the stepper with the
 * program below) is started once; it reads programs from a pipe and forks itself for each. A program reports over a
 * connection that it makes to the server's socket. When the server ends, the pipe closes and the spawner exits; the
 * processes it started live on.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync, unlinkSync, writeFileSync } from "node:fs";
import type { Server, Socket } from "node:net";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { getSystemErrorName } from "node:util";
import { PlatformError } from "../../../../contract/errors.ts";
import { openDoor } from "../../common/doors.ts";
import { OWN_FD_MIN, Program, REPORT_FD, REPORT_TAG } from "./program.ts";
import { type Arch, PROGRAM_BASE, PROGRAM_BYTES_MAX, stepperExecutable } from "./stepper.ts";
import { AT_FDCWD, O_CLOEXEC, SIGCHLD } from "./syscalls.ts";

/** What a program has reported so far. `ready` comes from inside a workload, over a separate connection. */
export interface Report {
  /** The workload's first process and the one that watches it. */
  pid: number | null;
  watcher: number | null;
  ready: boolean;
  /** The program ran to its end. */
  done: boolean;
  failure: { what: string; errno: number } | null;
}

/**
 * Descriptor on which the daemon reports readiness. Only that is accepted there: the writer may be a hostile program.
 */
export const READY_FD = 5;
/** Address of a spawned program in its process; the spawner's own program lies below. */
const SPAWNED_BASE = PROGRAM_BASE + PROGRAM_BYTES_MAX;
/** Time for a program's first report. */
const HELLO_WAIT_MS = 30_000;
/** Time to exit after its pipe is closed; then SIGKILL, since a debugger or the machine may hold it back. */
const STOP_WAIT_MS = 5_000;
const SOCKET = "report.sock";
const SIGNAL_DEFAULT = [0, 0, 0, 0];
const SIGNAL_IGNORE = [1, 0, 0, 0];

export class Spawner {
  readonly tempDir: string;
  readonly arch: Arch;
  readonly executable: string;
  /** Callbacks that wait for a connection, by tag and number. */
  readonly #waiting = new Map<string, (connection: Connection) => void>();
  #server: Server | null = null;
  #process: ChildProcess | null = null;
  #sequence = 0;

  /** `dir` belongs to the driver; no other user may write there. */
  constructor(dir: string, arch: Arch) {
    this.arch = arch;
    this.executable = join(dir, "stepper");
    this.tempDir = join(dir, "tmp");
  }

  async open(): Promise<void> {
    mkdirSync(this.tempDir, { recursive: true, mode: 0o700 });
    if (!existsSync(this.executable)) writeFileSync(this.executable, stepperExecutable(this.arch), { mode: 0o755 });
    this.#server = await openDoor(join(this.tempDir, SOCKET), (socket) => this.#greet(socket));
  }

  /** Runs a program to its end; throws the failure that a step reported. */
  async run(what: string, fill: (program: Program) => void): Promise<void> {
    const report = await this.start(
      (program) => {
        fill(program);
        const done = program.bytes(record(REPORT_TAG.done));
        program.step("write", [REPORT_FD, done, 16], "report the end");
        program.step("exit_group", [0], "end");
      },
      () => false,
    );
    if (!report.done) throw failureOf(what, report, "it ended without a word");
  }

  /** Starts a program. Resolves when `enough` returns true or all reporting processes have ended. */
  async start(
    fill: (program: Program) => void,
    enough: (report: Report) => boolean,
    signal?: AbortSignal,
  ): Promise<Report> {
    signal?.throwIfAborted();
    const number = this.#sequence++;
    const program = new Program(this.arch, SPAWNED_BASE);
    this.#preamble(program, number);
    fill(program);
    const greeted = [REPORT_TAG.hello, REPORT_TAG.waiting].map((tag) => this.#expect(`${tag}${number}`, signal));
    this.#send(program.encode());
    try {
      const [report, readiness] = await Promise.all(greeted);
      if (!report || !readiness) throw new Error("a program greets twice");
      return await listen(report, readiness, enough, signal);
    } catch (error) {
      for (const each of greeted) each.then(({ socket }) => socket.destroy()).catch(() => {}); // thrown below
      throw error;
    }
  }

  /** The spawner's pid; 0 before the first program. */
  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** Resolves when the spawner has exited. The next program starts a new one. */
  async ended(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.ref();
    await once(child, "exit");
  }

  async stop(): Promise<void> {
    this.#server?.close();
    this.#process?.stdin?.end();
    const timer = setTimeout(() => this.#process?.kill("SIGKILL"), STOP_WAIT_MS);
    await this.ended();
    clearTimeout(timer);
  }

  #preamble(program: Program, number: number): void {
    const address = Buffer.from(`\x01\0${SOCKET}\0`, "latin1"); // AF_UNIX, relative to the folder entered before
    const connect = (fd: number, flags: number, tag: string): void => {
      const hello = record(tag, number);
      program.step("socket", [1, 1, 0], "make a socket"); // OWN_FD_MIN, the lowest that is free
      program.step("connect", [OWN_FD_MIN, program.bytes(address), address.length], "connect to the server");
      program.step("write", [OWN_FD_MIN, program.bytes(hello), hello.length], "say who reports");
      program.step("dup3", [OWN_FD_MIN, fd, flags], "report there");
      program.step("close", [OWN_FD_MIN], "close");
    };
    program.step("rt_sigaction", [SIGCHLD, program.words(SIGNAL_DEFAULT), 0, 8], "hear of children again");
    program.step("close_range", [3, 0xffffffff, 0], "close what was inherited");
    program.step("openat", [AT_FDCWD, "/dev/null", O_CLOEXEC, 0], "open nothing"); // 3
    for (const fd of [0, REPORT_FD, READY_FD]) program.step("dup3", [3, fd, 0], "occupy a number");
    program.step("chdir", [this.tempDir], "enter the folder of the socket");
    connect(REPORT_FD, O_CLOEXEC, REPORT_TAG.hello);
    connect(READY_FD, 0, REPORT_TAG.waiting);
  }

  #expect(key: string, signal?: AbortSignal): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(key);
        signal?.removeEventListener("abort", onAbort);
      };
      const onAbort = (): void => {
        settle();
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        settle();
        reject(new PlatformError("unavailable", "The machine did not start a process in time. Try again."));
      }, HELLO_WAIT_MS);
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiting.set(key, (connection) => {
        settle();
        resolve(connection);
      });
    });
  }

  /** The first record of a connection says which program it belongs to. */
  #greet(socket: Socket): void {
    let bytes = Buffer.alloc(0);
    socket.once("end", () => socket.destroy());
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    const onData = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk]);
      if (bytes.length < 16) return;
      socket.off("data", onData).pause(); // later data stays in the socket until `listen` reads it
      const waiting = this.#waiting.get(`${bytes.toString("latin1", 0, 8)}${bytes.readBigInt64LE(8)}`);
      if (waiting) waiting({ socket, rest: bytes.subarray(16), closed });
      else socket.destroy(); // the waiting caller has given up
    };
    socket.on("data", onData);
  }

  #send(program: Buffer): void {
    const length = Buffer.alloc(8);
    length.writeBigInt64LE(BigInt(program.length));
    // Eight trailing bytes show that the program is complete, in case the server dies in the middle of the write.
    this.#started().stdin?.write(Buffer.concat([length, program, Buffer.alloc(8)]));
  }

  #started(): ChildProcess {
    if (this.#process && this.#process.exitCode === null && this.#process.signalCode === null) return this.#process;
    const file = join(this.tempDir, `spawner-${process.pid}`);
    writeFileSync(file, spawnerProgram(this.arch));
    const fd = openSync(file, "r");
    unlinkSync(file);
    // The argument only identifies the process in the process list.
    const child = spawn(this.executable, [this.tempDir], {
      argv0: "berth-spawner",
      detached: true,
      env: {},
      stdio: ["pipe", "ignore", "ignore", fd, "ignore", "ignore"],
    });
    closeSync(fd);
    child.stdin?.on("error", () => {}); // it died: callers time out, and the next program starts a new spawner
    child.unref();
    (child.stdin as Writable & { unref?: () => void }).unref?.();
    this.#process = child;
    return child;
  }
}

/** Reads programs and forks for each, until the pipe closes. */
function spawnerProgram(arch: Arch): Buffer {
  const program = new Program(arch);
  const [next, body, end] = [program.label(), program.label(), program.label()];
  const WAIT_ALL = 0x100;
  const scratch = program.words([0]);
  program.step("close_range", [1, 0xffffffff, 0], "close what was inherited");
  for (const _ of [1, 2]) program.step("openat", [AT_FDCWD, "/dev/null", 2, 0], "open nothing");
  program.step("rt_sigaction", [SIGCHLD, program.words(SIGNAL_IGNORE), 0, 8], "let children vanish");
  const [PROT_READ_WRITE, PRIVATE_FIXED_ANONYMOUS] = [3, 0x32];
  program.step("mmap", [SPAWNED_BASE, PROGRAM_BYTES_MAX, PROT_READ_WRITE, PRIVATE_FIXED_ANONYMOUS, -1, 0], "make room");
  program.place(next);
  // The length is stored as the third argument of the following step.
  program.step("recvfrom", [0, { label: body, word: 3 }, 8, WAIT_ALL, 0, 0], "read a length", { onZero: end });
  program.place(body);
  program.step("recvfrom", [0, SPAWNED_BASE, 0, WAIT_ALL, 0, 0], "read a program", { onZero: end });
  program.step("recvfrom", [0, scratch, 8, WAIT_ALL, 0, 0], "read the mark behind it", { onZero: end });
  program.step("clone", [SIGCHLD], "fork", { onValue: next, onZero: SPAWNED_BASE });
  program.place(end);
  program.step("exit_group", [0], "end");
  return program.encode();
}

interface Connection {
  socket: Socket;
  rest: Buffer;
  closed: Promise<void>;
}

function listen(
  report: Connection,
  readiness: Connection,
  enough: (report: Report) => boolean,
  signal?: AbortSignal,
): Promise<Report> {
  return new Promise((resolve, reject) => {
    let open = 2;
    const settle = (): void => {
      signal?.removeEventListener("abort", onAbort);
      for (const { socket } of [report, readiness]) socket.destroy();
    };
    const onAbort = (): void => {
      settle();
      reject(signal?.reason);
    };
    const look = (): void => {
      const said = { ...parseReport(report.rest), ready: readiness.rest.includes(READY_WORD) };
      if (open > 0 && !said.failure && !enough(said)) return;
      settle();
      resolve(said);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) return onAbort();
    for (const connection of [report, readiness]) {
      connection.socket.on("data", (chunk: Buffer) => {
        connection.rest = Buffer.concat([connection.rest, chunk]).subarray(0, REPORT_BYTES_MAX);
        look();
      });
      void connection.closed.then(() => {
        open -= 1;
        look();
      });
      connection.socket.resume();
    }
    look();
  });
}

const READY_WORD = "READY\n";
/** Longest report: a failure with its text. */
const REPORT_BYTES_MAX = 64 * 1024;

/** Parses the reports of the program itself, from a connection that no workload has. */
export function parseReport(bytes: Buffer): Omit<Report, "ready"> {
  const report: Omit<Report, "ready"> = { pid: null, watcher: null, done: false, failure: null };
  for (let at = 0; at + 16 <= bytes.length; ) {
    const tag = bytes.toString("latin1", at, at + 8);
    const value = Number(bytes.readBigInt64LE(at + 8));
    at += 16;
    if (tag === REPORT_TAG.pid) report.pid = value;
    else if (tag === REPORT_TAG.watcher) report.watcher = value;
    else if (tag === REPORT_TAG.done) report.done = true;
    else if (tag === REPORT_TAG.failure) {
      const end = bytes.indexOf(0, at);
      if (end < 0) break;
      report.failure = { what: bytes.toString("utf8", at, end), errno: value };
      at = end + 1;
    } else break;
  }
  return report;
}

export function record(tag: string, value = 0): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.write(tag, "latin1");
  bytes.writeBigInt64LE(BigInt(value), 8);
  return bytes;
}

/** The step's description and the system's error are meant for the operator and hold no secret. */
export function failureOf(what: string, { failure }: Pick<Report, "failure">, otherwise: string): PlatformError {
  const reason = failure ? `${failure.what}: ${getSystemErrorName(failure.errno)}` : otherwise;
  return new PlatformError("internal", `${what} failed (${reason}).`, { detail: { what, reason } });
}
