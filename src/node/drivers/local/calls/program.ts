/** Builds the list of system calls that the stepper performs. */
import { type Arch, PROGRAM_BASE, PROGRAM_BYTES_MAX, STEP_WORDS } from "./stepper.ts";
import { AT_FDCWD, O_CLOEXEC, type SyscallName, syscallNumber } from "./syscalls.ts";

/** Data inside the program; its address is known when the program is encoded. */
export interface Data {
  readonly offset: number;
}

/** A place in the step list; set with `place` before encoding. */
export interface Label {
  step: number | null;
}

/** One word inside a step: number, six arguments, ... */
export interface StepWord {
  label: Label;
  word: number;
}

/** Text arguments become NUL-terminated data; data and words of steps become their addresses. */
export type Arg = number | bigint | string | Data | StepWord;

export interface StepOptions {
  /** "fail" (default) ends the program with a report, "ignore" continues, a label is jumped to. */
  onError?: "fail" | "ignore" | Label;
  /** The next step when the result is zero (`onZero`) or above (`onValue`), such as in child and parent of a fork. */
  onZero?: Label | number;
  onValue?: Label | number;
  /** Eight bytes that receive the result. A word of another step makes the result an argument of that step. */
  store?: Data | StepWord;
}

/** The record that begins every failure report, for programs that share one connection. */
export interface FailureHeader {
  record: Data;
  bytes: number;
  /** Offset of the eight bytes in the record that receive the result. */
  resultAt: number;
}

interface Step {
  name: SyscallName | number;
  args: Exclude<Arg, string>[];
  what: string;
  options: StepOptions;
  header: FailureHeader | null;
}

/**
 * Descriptor on which a program reports. Two processes may report, so each record is one write: eight bytes of tag,
 * eight bytes of value. The value of a failure is the step's result; its text follows, ended by NUL.
 */
export const REPORT_FD = 4;
export const REPORT_TAG = {
  hello: "PROGRAM\0",
  waiting: "WAITING\0",
  pid: "PROCESS\0",
  watcher: "WATCHER\0",
  failure: "FAILURE\0",
  done: "THE END\0",
} as const;
/** First descriptor that a program may open for itself; lower ones are given to it. */
export const OWN_FD_MIN = 6;

export class Program {
  readonly arch: Arch;
  readonly #base: number;
  #steps: Step[] = [];
  #data: Buffer[] = [];
  #dataBytes = 0;
  #texts = new Map<string, Data>();
  #pointers: { at: number; to: Data }[] = [];
  #fds = new Set<number>();
  /** From here on a failing step reports this header and its step number instead of its text. */
  failureHeader: FailureHeader | null = null;
  /** Where data begins in the encoded program. */
  dataAt = 0;

  /** `base` is the address at which the program will be mapped. */
  constructor(arch: Arch, base = PROGRAM_BASE) {
    this.arch = arch;
    this.#base = base;
  }

  step(name: SyscallName | number, args: Arg[], what: string, options: StepOptions = {}): void {
    this.#steps.push({
      name,
      args: args.map((arg) => (typeof arg === "string" ? this.text(arg) : arg)),
      what,
      options,
      header: this.failureHeader,
    });
  }

  /** The description of each step, to look up a reported step number. */
  get names(): string[] {
    return this.#steps.map(({ what }) => what);
  }

  /** A step that opens a descriptor. The kernel gives the lowest free number, so the number is known when encoding. */
  open(name: SyscallName, args: Arg[], what: string): number {
    this.step(name, args, what);
    return this.reserve();
  }

  /** The number of the next descriptor that a step will open. */
  reserve(): number {
    let fd = OWN_FD_MIN;
    while (this.#fds.has(fd)) fd++;
    this.#fds.add(fd);
    return fd;
  }

  close(fd: number): void {
    this.step("close", [fd], "close");
    this.release(fd);
  }

  /** Adds the steps of a child process, whose descriptors are counted separately. */
  inChild(work: () => void): void {
    const own = new Set(this.#fds);
    work();
    this.#fds = own;
  }

  /** Writes a small file; ignores a failure. */
  tryWriteFile(path: string, content: string, what: string): void {
    const fd = this.reserve();
    this.step("openat", [AT_FDCWD, path, 1 | O_CLOEXEC, 0], `open ${what}`, { onError: "ignore" });
    this.step("write", [fd, content, content.length], what, { onError: "ignore" });
    this.step("close", [fd], "close", { onError: "ignore" });
    this.release(fd);
  }

  /** Marks a descriptor as free after a step has closed it. */
  release(fd: number): void {
    this.#fds.delete(fd);
  }

  /** Writes a small file that exists, such as one of /proc or a control group. */
  writeFile(path: string, content: string | Data, bytes: number, what: string): void {
    const fd = this.open("openat", [AT_FDCWD, path, 1 | O_CLOEXEC, 0], `open ${what}`);
    this.step("write", [fd, content, bytes], what);
    this.close(fd);
  }

  label(): Label {
    return { step: null };
  }

  place(label: Label): void {
    label.step = this.#steps.length;
  }

  text(value: string): Data {
    const known = this.#texts.get(value);
    if (known) return known;
    if (value.includes("\0")) throw new TypeError("a system call's text cannot hold a NUL");
    const data = this.bytes(Buffer.from(`${value}\0`));
    this.#texts.set(value, data);
    return data;
  }

  bytes(content: Buffer): Data {
    const data = { offset: this.#dataBytes };
    const padded = Buffer.alloc(Math.ceil(content.length / 8) * 8);
    content.copy(padded);
    this.#data.push(padded);
    this.#dataBytes += padded.length;
    return data;
  }

  /** An array of 64-bit words, of which some are addresses. */
  words(values: (number | bigint | Data)[]): Data {
    const content = Buffer.alloc(values.length * 8);
    const data = { offset: this.#dataBytes };
    values.forEach((value, index) => {
      if (typeof value === "object") this.#pointers.push({ at: data.offset + index * 8, to: value });
      else content.writeBigInt64LE(BigInt.asIntN(64, BigInt(value)), index * 8);
    });
    return this.bytes(content);
  }

  /** A NULL-terminated array of texts: argv, envp. */
  texts(values: string[]): Data {
    return this.words([...values.map((value) => this.text(value)), 0]);
  }

  encode(): Buffer {
    const scratch = this.words([0]);
    const reports = this.#steps.map(({ what, options, header }, index) => {
      if (options.onError !== undefined && options.onError !== "fail") return null;
      if (header) {
        const parts = [header.record, header.bytes, this.words([index]), 8];
        return { data: this.words(parts), bytes: 0, resultAt: header.record.offset + header.resultAt };
      }
      const content = Buffer.from(`${REPORT_TAG.failure}${"\0".repeat(8)}${what}\0`);
      const data = this.bytes(content);
      return { data, bytes: content.length, resultAt: data.offset + 8 };
    });
    const main = this.#steps.length;
    this.dataAt = (main + reports.filter((report) => report).length * 2) * STEP_WORDS * 8;
    const dataBase = this.#base + this.dataAt;
    const addressOf = (data: Data): bigint => BigInt(dataBase + data.offset);
    const stepAt = (index: number): bigint => BigInt(this.#base + index * STEP_WORDS * 8);
    const place = (label: Label): bigint => {
      if (label.step === null) throw new Error("a label of the program was never placed");
      return stepAt(label.step);
    };
    const resolve = (arg: Data | StepWord): bigint =>
      "label" in arg ? place(arg.label) + BigInt(arg.word * 8) : addressOf(arg);
    const target = (to: Label | number | undefined, next: number): bigint =>
      to === undefined ? stepAt(next) : typeof to === "number" ? BigInt(to) : place(to);
    const words: bigint[] = [];
    const emit = (
      name: SyscallName | number,
      args: Exclude<Arg, string>[],
      result: Data | StepWord,
      next: [bigint, bigint, bigint],
    ): void => {
      words.push(BigInt(typeof name === "number" ? name : syscallNumber(name, this.arch)));
      for (let index = 0; index < 6; index++) {
        const arg = args[index] ?? 0;
        words.push(typeof arg === "object" ? resolve(arg) : BigInt(arg));
      }
      words.push(resolve(result), ...next);
    };
    let reportAt = main;
    this.#steps.forEach(({ name, args, options }, index) => {
      const report = reports[index];
      const onZero = target(options.onZero, index + 1);
      const onValue = target(options.onValue, index + 1);
      const result = options.store ?? (report ? { offset: report.resultAt } : scratch);
      const onError = typeof options.onError === "object" ? place(options.onError) : stepAt(index + 1);
      emit(name, args, result, [report ? stepAt(reportAt) : onError, onZero, onValue]);
      if (report) reportAt += 2;
    });
    for (const report of reports) {
      if (!report) continue;
      const exit = stepAt(words.length / STEP_WORDS + 1);
      if (report.bytes > 0) emit("write", [REPORT_FD, report.data, report.bytes], scratch, [exit, exit, exit]);
      else emit("writev", [REPORT_FD, report.data, 2], scratch, [exit, exit, exit]);
      emit("exit_group", [FAILED_EXIT], scratch, [exit, exit, exit]);
    }

    const data = Buffer.concat(this.#data);
    for (const { at, to } of this.#pointers) data.writeBigUInt64LE(addressOf(to), at);
    const code = Buffer.alloc(words.length * 8);
    words.forEach((word, index) => {
      code.writeBigInt64LE(BigInt.asIntN(64, word), index * 8);
    });
    const program = Buffer.concat([code, data]);
    if (program.length > PROGRAM_BYTES_MAX) throw new RangeError("the program is too long");
    return program;
  }
}

/** Exit code of a program that reported a failure; not one that a shell or a signal gives. */
export const FAILED_EXIT = 113;
