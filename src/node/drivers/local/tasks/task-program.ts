/**
 * The system calls that run one command in an isolation of its own, without a daemon. Three processes take part:
 *
 *   watcher  outside, but in the command's control groups and network: waits for the command, kills it at its end
 *            time, keeps its output short, serves doors, and reports the end
 *   init     the first process of the pid namespace: adopts orphans; when init is killed, all processes end
 *   command  executes the requested program
 *
 * The watcher ends last. If it is killed, init is killed with it, and so is everything else.
 *
 * For the same kind of command in the same slot, all steps but a few words are the same, so they are encoded once. The
 * arguments and the environment are a second program behind the first.
 */

import { type Data, type Label, OWN_FD_MIN, Program, REPORT_FD, type StepOptions } from "../calls/program.ts";
import { type Arch, PROGRAM_BYTES_MAX, STEP_WORDS } from "../calls/stepper.ts";
import {
  AT_FDCWD,
  CLONE,
  CLONE_PIDFD,
  O_CLOEXEC,
  PR_SET_DUMPABLE,
  PR_SET_NAME,
  PR_SET_PDEATHSIG,
  SIGCHLD,
  SIGKILL,
  SIGPIPE,
  SIGUSR1,
} from "../calls/syscalls.ts";
import { COPY_BYTES, doorSteps, listenOnLoopback } from "../network/door-program.ts";
import {
  bringUpLoopback,
  isolationSteps,
  joinControlGroups,
  type LaunchPlan,
  makePidNamespace,
  setCapabilities,
} from "../workload/launch-program.ts";
import { OOM_TEXT_BYTES, TASK_TAG } from "./task-report.ts";

export type TaskPlan = Omit<LaunchPlan, "argv" | "env"> & {
  /** `cgroup.procs` files to join; empty when the spawner is in the groups already. */
  cgroups: string[];
  /** Mount point that all tasks share, each in its own mount namespace. */
  stage: string;
  /** File with the end times of all slots, and this slot's place in it; null: no time limit. */
  ends: { file: string; slot: number } | null;
  /** The control group's file that counts OOM kills. */
  oomFile: string | null;
  doors: { port: number; tag: string }[];
  /** The server's socket for door connections: a folder, and a name in it. */
  doorSocket: { dir: string; name: string };
  /** The server gives the network its interface before the command starts, then sends SIGUSR1. */
  waitForNetwork: boolean;
};

export interface TaskCommand {
  /** Identifies the task in reports. */
  number: number;
  /** JSON for the next run of the server; see TaskNote. */
  note: string;
  endsAtMs: number | null;
  argv: string[];
  env: Record<string, string>;
  workDir: string;
}

/** Files in a slot's folder. */
export const TASK_FILES = { stdout: "out", stderr: "err", note: "note", layers: "fs" } as const;
export const TIMER_SPEC_BYTES = 32;
/** Fixed size of the note: holds two names, an id and the punctuation. */
export const NOTE_BYTES = 1024;
/** Interval between checks of the output's length. */
const LOOK_NS = 250_000_000;
/** Kept per stream; the head of longer output is freed on the disk. */
const OUTPUT_KEEP_BYTES = 32 * 1024 * 1024;
/** Longest wait for the network; afterwards the command starts without one. */
const NETWORK_WAIT_S = 30;
const NOT_FOUND_CODE = 127;
const SIGNAL_DEFAULT = [0, 0, 0, 0];
const SIGNAL_IGNORE = [1, 0, 0, 0];
const REMOVE_DIR = 0x200;
const WNOHANG = 1;
/** The command's pid in its own namespace, where init is 1. */
const COMMAND_PID = 2;
const ignore = { onError: "ignore" } as const;

export class TaskProgram {
  /** The description of each step. */
  readonly names: string[];
  readonly #arch: Arch;
  readonly #bytes: Buffer;
  readonly #base: number;
  /** Offsets in `#bytes` of the words that differ between commands. */
  readonly #numbers: number[];
  readonly #end: number;
  readonly #note: number;

  /** `base` is the address at which the program will be mapped. */
  constructor(arch: Arch, base: number, plan: TaskPlan) {
    const program = new Program(arch, base);
    const { numbers, end, note, handOver } = taskSteps(program, plan, base + PROGRAM_BYTES_MAX - COPY_BYTES);
    this.#arch = arch;
    this.#base = base;
    this.names = program.names;
    const bytes = program.encode();
    const at = ({ offset }: Data): number => program.dataAt + offset;
    this.#numbers = numbers.map(at);
    this.#end = at(end);
    this.#note = at(note);
    const [ON_ZERO, ON_VALUE] = [9, 10];
    for (const word of [ON_ZERO, ON_VALUE])
      bytes.writeBigUInt64LE(BigInt(base + bytes.length), ((handOver.step ?? 0) * STEP_WORDS + word) * 8);
    this.#bytes = bytes;
  }

  encode(command: TaskCommand): Buffer {
    const bytes = Buffer.from(this.#bytes);
    for (const at of this.#numbers) bytes.writeBigInt64LE(BigInt(command.number), at);
    timerSpec(command.endsAtMs ?? 0).copy(bytes, this.#end);
    if (Buffer.byteLength(command.note) > NOTE_BYTES) throw new RangeError("the note of a task is too long");
    bytes.write(command.note, this.#note);
    const own = new Program(this.#arch, this.#base + bytes.length);
    commandSteps(own, command);
    return Buffer.concat([bytes, own.encode()]);
  }
}

/** An absolute time as the kernel's timers take it: no interval, seconds, nanoseconds. Zero would disarm the timer. */
export function timerSpec(atMs: number): Buffer {
  const ms = Math.max(1, Math.floor(atMs));
  const spec = Buffer.alloc(TIMER_SPEC_BYTES);
  spec.writeBigInt64LE(BigInt(Math.floor(ms / 1000)), 16);
  spec.writeBigInt64LE(BigInt((ms % 1000) * 1_000_000), 24);
  return spec;
}

interface Made {
  numbers: Data[];
  end: Data;
  note: Data;
  /** The step after which the command's own program continues. */
  handOver: Label;
}

function taskSteps(program: Program, plan: TaskPlan, buffer: number): Made {
  const numbers: Data[] = [];
  const record = (tag: string, words = 0): Data => {
    const data = program.bytes(Buffer.concat([Buffer.from(tag, "latin1"), Buffer.alloc(8 + words * 8)]));
    numbers.push(wordOf(data, 1));
    return data;
  };
  const failure = (tag: string) => ({ record: record(tag, 1), bytes: 24, resultAt: 16 });
  const [watcherFailure, commandFailure] = [failure(TASK_TAG.failure), failure(TASK_TAG.commandFailure)];
  program.failureHeader = watcherFailure;
  const ended = record(TASK_TAG.ended, 4 + OOM_TEXT_BYTES / 8);
  const [init, command, watch, over] = [program.label(), program.label(), program.label(), program.label()];

  settleDescriptors(program);
  joinControlGroups(program, plan);
  program.step("chdir", [plan.dir], "enter the slot");
  const { note, noteFd } = writeNote(program);
  makeLayers(program, plan);
  const create = 0o3101 | O_CLOEXEC; // O_WRONLY | O_CREAT | O_TRUNC | O_APPEND
  const streams = [TASK_FILES.stdout, TASK_FILES.stderr].map((name) =>
    program.open("openat", [AT_FDCWD, name, create, 0o600], `open ${name}`),
  );
  const end = program.bytes(timerSpec(0));
  const timer = plan.ends ? startTimer(program, plan.ends, end, over) : null;
  makePidNamespace(program, plan.identity, CLONE.NEWNET);
  bringUpLoopback(program);
  const listeners = plan.doors.map(({ port }) => listenOnLoopback(program, port));
  if (plan.waitForNetwork) waitForNetwork(program, record(TASK_TAG.network, 1));

  const processes = record(TASK_TAG.processes, 3);
  program.step("getpid", [], "know ourselves", { store: wordOf(processes, 2) });
  const forked = program.label();
  const flags = [CLONE_PIDFD | SIGCHLD, 0, program.words([0])];
  program.step("clone", flags, "fork init", { onZero: init, onValue: forked, store: wordOf(processes, 3) });
  const initFd = program.reserve();
  program.place(forked);
  program.step("clone", flags, "fork", { onZero: command, onValue: watch, store: wordOf(processes, 4) });
  program.failureHeader = commandFailure;
  initSteps(program, init);
  const handOver = program.label();
  program.inChild(() => becomeCommand(program, command, plan, { streams, end, handOver }));
  const commandFd = program.reserve();

  program.failureHeader = watcherFailure;
  program.place(watch);
  program.step("write", [REPORT_FD, processes, 40], "report the processes", ignore);
  const [look, exited] = [program.label(), program.label()];
  program.place(look);
  const watched = [commandFd, ...(timer ? [timer.fd] : []), ...listeners];
  program.step(
    "ppoll",
    [program.words(watched.map(pollIn)), watched.length, program.words([0, LOOK_NS]), 0, 0],
    "wait",
    ignore,
  );
  const on = program.label();
  const seen = { onZero: on, onValue: exited, onError: exited };
  program.step("wait4", [-1, wordOf(ended, 2), WNOHANG, 0], "see whether it has ended", seen);
  program.place(on);
  timer?.look();
  plan.doors.forEach(({ tag }, index) => {
    const hello = record(tag);
    doorSteps(program, { listener: listeners[index] ?? 0, hello, socket: plan.doorSocket, buffer });
  });
  for (const fd of streams) keepShort(program, fd);
  program.step("getpid", [], "look again", { onValue: look });

  const finish = program.label();
  program.place(over);
  program.step("pidfd_send_signal", [initFd, SIGKILL, 0, 0], "end all", ignore);
  program.step("wait4", [-1, wordOf(ended, 2), 0, 0], "see how it ended", { onError: finish });
  program.place(exited);
  program.step("pidfd_send_signal", [initFd, SIGKILL, 0, 0], "end what it has left", ignore);
  const reap = program.label();
  program.place(reap);
  program.step("wait4", [-1, 0, 0, 0], "reap", { onValue: reap, onError: finish });
  program.place(finish);
  reportEnd(program, plan, { ended, ending: record(TASK_TAG.ending), streams, noteFd });
  return { numbers, end, note, handOver };
}

/** An entry for ppoll: a descriptor, and POLLIN. */
const pollIn = (fd: number): bigint => BigInt(fd) | (1n << 32n);

const wordOf = ({ offset }: Data, index: number): Data => ({ offset: offset + 8 * index });

/**
 * Moves the report from standard output to REPORT_FD, points standard streams to /dev/null; OWN_FD_MIN is then free
 * next.
 */
function settleDescriptors(program: Program): void {
  program.step("close_range", [3, 0xffffffff, 0], "close what was inherited");
  program.step("dup3", [1, REPORT_FD, O_CLOEXEC], "keep the report");
  program.step("openat", [AT_FDCWD, "/dev/null", 2 | O_CLOEXEC, 0], "open nothing"); // 3
  for (const fd of [0, 1, 2]) program.step("dup3", [3, fd, 0], "occupy a number");
  program.step("dup3", [3, OWN_FD_MIN - 1, O_CLOEXEC], "occupy a number");
  program.step("rt_sigaction", [SIGCHLD, program.words(SIGNAL_DEFAULT), 0, 8], "hear of children again");
  program.step("rt_sigaction", [SIGPIPE, program.words(SIGNAL_IGNORE), 0, 8], "outlive the server");
  program.step("umask", [0], "umask");
}

function writeNote(program: Program): { note: Data; noteFd: number } {
  const note = program.bytes(Buffer.alloc(NOTE_BYTES, " "));
  const flags = 0o1101 | O_CLOEXEC; // O_WRONLY | O_CREAT | O_TRUNC
  const noteFd = program.open("openat", [AT_FDCWD, TASK_FILES.note, flags, 0o600], "open the note");
  program.step("write", [noteFd, note, NOTE_BYTES], "write the note");
  return { note, noteFd };
}

const partDir = (part: number): string => `${TASK_FILES.layers}/${part}`;

/** Makes the folders that the last command may have changed; the others may already exist. */
function makeLayers(program: Program, { parts }: TaskPlan): void {
  const make = (dir: string, options: StepOptions = {}): void =>
    program.step("mkdirat", [AT_FDCWD, dir, 0o755], `make ${dir}`, options);
  make(TASK_FILES.layers, ignore);
  for (const part of parts.keys()) {
    for (const dir of [partDir(part), `${partDir(part)}/work`]) make(dir, ignore);
    make(`${partDir(part)}/upper`);
  }
}

interface Timer {
  fd: number;
  /** Goes to `over` if the end time has passed and was not moved. */
  look(): void;
}

const [REALTIME, ABSOLUTE, NONBLOCK] = [0, 1, 0o4000];
/** A timer set to a time in the past fires a little later; wait this long for it. */
const FIRE_NS = 1_000_000;

function setTimer(program: Program, spec: Data): number {
  const fd = program.open("timerfd_create", [REALTIME, NONBLOCK | O_CLOEXEC], "make a timer");
  program.step("timerfd_settime", [fd, ABSOLUTE, spec, 0], "set the timer");
  return fd;
}

/** The server moves the end time in a file, so every check reads it and sets the timer anew. */
function startTimer(program: Program, { file, slot }: NonNullable<TaskPlan["ends"]>, spec: Data, over: Label): Timer {
  const offset = slot * TIMER_SPEC_BYTES;
  const fired = program.words([0]);
  const endsFd = program.open("openat", [AT_FDCWD, file, 2 | O_CLOEXEC, 0], "open the times");
  program.step("pwrite64", [endsFd, spec, TIMER_SPEC_BYTES, offset], "write the time");
  const fd = setTimer(program, spec);
  const setAnew = (onZero: Label): void => {
    program.step("pread64", [endsFd, spec, TIMER_SPEC_BYTES, offset], "read the time");
    program.step("timerfd_settime", [fd, ABSOLUTE, spec, 0], "set the timer", { onZero });
  };
  const look = (): void => {
    const [came, sure, not, on] = [program.label(), program.label(), program.label(), program.label()];
    program.step("read", [fd, fired, 8], "look at the timer", { onValue: came, onZero: not, onError: not });
    program.place(not);
    setAnew(on);
    program.place(came);
    setAnew(sure);
    program.place(sure);
    const list = program.words([pollIn(fd)]);
    program.step("ppoll", [list, 1, program.words([0, FIRE_NS]), 0, 0], "see whether it fires at once", {
      onValue: over,
      onZero: on,
    });
    program.place(on);
  };
  return { fd, look };
}

function waitForNetwork(program: Program, record: Data): void {
  const signals = program.words([1 << (SIGUSR1 - 1)]);
  const [BLOCK, UNBLOCK] = [0, 1];
  program.step("rt_sigprocmask", [BLOCK, signals, 0, 8], "hold a signal");
  program.step("getpid", [], "know ourselves", { store: wordOf(record, 2) });
  program.step("write", [REPORT_FD, record, 24], "ask for a network");
  program.step("rt_sigtimedwait", [signals, 0, program.words([NETWORK_WAIT_S, 0]), 8], "wait for the network", ignore);
  program.step("rt_sigprocmask", [UNBLOCK, signals, 0, 8], "let signals come");
}

/** init only waits. It ignores SIGCHLD, so the kernel reaps its children. */
function initSteps(program: Program, start: Label): void {
  program.place(start);
  program.step("prctl", [PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0], "end with the watcher");
  program.step("rt_sigaction", [SIGCHLD, program.words(SIGNAL_IGNORE), 0, 8], "let children vanish");
  program.step("prctl", [PR_SET_NAME, "init", 0, 0, 0], "have a name", ignore);
  program.step("prctl", [PR_SET_DUMPABLE, 0, 0, 0, 0], "be left alone");
  program.step("chdir", ["/"], "hold no folder");
  program.step("close_range", [0, 0xffffffff, 0], "hold no descriptors");
  setCapabilities(program, 0n, "give up capabilities");
  const rest = program.label();
  program.place(rest);
  program.step("ppoll", [0, 0, 0, 0, 0], "rest", { onError: rest, onZero: rest, onValue: rest });
}

function becomeCommand(
  program: Program,
  start: Label,
  plan: TaskPlan,
  { streams, end, handOver }: { streams: number[]; end: Data; handOver: Label },
): void {
  program.place(start);
  program.tryWriteFile("/proc/self/oom_score_adj", "0", "be as likely to end as anybody");
  program.step("setsid", [], "start a session");
  streams.forEach((fd, index) => {
    program.step("dup3", [fd, index + 1, 0], "write to a file");
  });
  // A timer of the command's own: no other process consumes its expiry, which is checked after the isolation steps.
  const timer = plan.ends ? setTimer(program, end) : null;
  isolationSteps(program, plan, { stage: plan.stage, helper: COMMAND_PID + 1, network: 0 });
  if (timer !== null) endBeforeItBegan(program, timer);
  program.step("rt_sigaction", [SIGPIPE, program.words(SIGNAL_DEFAULT), 0, 8], "end with a broken pipe again");
  program.place(handOver);
  program.step("close_range", [3, 0xffffffff, 4], "hide descriptors");
}

function endBeforeItBegan(program: Program, timer: number): void {
  const [late, on] = [program.label(), program.label()];
  const fired = program.words([0]);
  program.step("read", [timer, fired, 8], "look at the timer", { onValue: late, onZero: on, onError: on });
  program.place(late);
  program.step("kill", [COMMAND_PID, SIGKILL], "end before it began");
  program.place(on);
}

/** The command's own program. A failure here is the command's: a message goes to its standard error. */
function commandSteps(program: Program, { number, argv, env, workDir }: TaskCommand): void {
  const report = Buffer.concat([Buffer.from(TASK_TAG.started, "latin1"), Buffer.alloc(8)]);
  report.writeBigInt64LE(BigInt(number), 8);
  const started = program.bytes(report);
  const missing = program.label();
  program.step("write", [REPORT_FD, started, 16], "report the start", ignore);
  program.step("chdir", [workDir], "enter the working directory", { onError: missing });
  const [name = ""] = argv;
  const list = [program.texts(argv), program.texts(Object.entries(env).map(([key, value]) => `${key}=${value}`))];
  const paths = name.includes("/") ? [name] : (env.PATH ?? "").split(":").map((dir) => `${dir || "."}/${name}`);
  for (const path of paths) program.step("execve", [path, ...list], "start the command", ignore);
  program.place(missing);
  const words = Buffer.from(`${name}: it could not be started; is it there, and may it be executed?\n`);
  program.step("write", [2, program.bytes(words), words.length], "say so", ignore);
  program.step("exit_group", [NOT_FOUND_CODE], "end");
}

/** Frees the head of output beyond OUTPUT_KEEP_BYTES; empties the file where the file system has no holes. */
function keepShort(program: Program, fd: number): void {
  const [punch, empty, on] = [program.label(), program.label(), program.label()];
  const [SEEK_END, KEEP_SIZE_PUNCH_HOLE] = [2, 3];
  const skip = { onZero: on, onError: on };
  // lseek fails when the file is shorter; otherwise it returns the bytes to free.
  const much = { ...skip, onValue: punch, store: { label: punch, word: 4 } };
  program.step("lseek", [fd, -OUTPUT_KEEP_BYTES, SEEK_END], "measure the output", much);
  program.place(punch);
  const done = { onZero: on, onValue: on, onError: empty };
  program.step("fallocate", [fd, KEEP_SIZE_PUNCH_HOLE, 0, 0], "give back the head of the output", done);
  program.place(empty);
  program.step("ftruncate", [fd, 0], "empty the output", ignore);
  program.place(on);
}

interface End {
  ended: Data;
  ending: Data;
  streams: number[];
  noteFd: number;
}

/** Removes folders that are still empty; the server removes all others. */
function reportEnd(program: Program, { parts, oomFile }: TaskPlan, { ended, ending, streams, noteFd }: End): void {
  const SEEK_END = 2;
  streams.forEach((fd, index) => {
    program.step("lseek", [fd, 0, SEEK_END], "measure the output", { ...ignore, store: wordOf(ended, 3 + index) });
  });
  if (oomFile !== null) {
    const fd = program.reserve();
    program.step("openat", [AT_FDCWD, oomFile, O_CLOEXEC, 0], "open", ignore);
    program.step("read", [fd, wordOf(ended, 6), OOM_TEXT_BYTES], "read what memory has cost", ignore);
  }
  const kept = program.label();
  const remove = (path: string, flags: number): void =>
    program.step("unlinkat", [AT_FDCWD, path, flags], "remove", { onError: kept, store: wordOf(ended, 5) });
  for (const part of parts.keys()) {
    remove(`${partDir(part)}/upper`, REMOVE_DIR);
    // Marks that the kernel leaves for a volatile overlay; it refuses to mount again while they exist.
    const mark = `${partDir(part)}/work/work/incompat`;
    remove(`${mark}/volatile/dirty`, 0);
    for (const dir of [`${mark}/volatile`, mark]) remove(dir, REMOVE_DIR);
  }
  program.place(kept);
  // Keep the note when no server listens: the next one then learns of the task.
  const left = program.label();
  program.step("write", [REPORT_FD, ending, 16], "see whether anybody listens", { onError: left });
  program.step("ftruncate", [noteFd, 0], "forget the note", ignore);
  program.place(left);
  program.step("write", [REPORT_FD, ended, 48 + OOM_TEXT_BYTES], "report the end", ignore);
  program.step("exit_group", [0], "end");
}
