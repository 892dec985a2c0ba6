/**
 * The process that runs the code of one context. The code may do anything to this process: kill it, close its
 * descriptors, write to them what the worker itself writes. The context sees no more of that than an execution that
 * failed, and other contexts see nothing.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { Duplex, Readable } from "node:stream";
import { errnoOf } from "../http/api-error.ts";
import { familyOf } from "../process/tree.ts";
import type { Language } from "./languages.ts";
import { MarkedOutput } from "./marked-output.ts";
import { errorMessage, type Listener, type Message } from "./wire.ts";

/** Largest result; a result holds images as base64. */
const LINE_BYTES_MAX = 32 * 1024 * 1024;
/** Output beyond this, of one execution, is discarded. */
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
/** Longest text of one message. */
const TEXT_CHARS_MAX = 64 * 1024;
/** Time between the interrupt and the kill. */
const INTERRUPT_GRACE_MS = 2_000;
/** How long the marks, or the last output of an ended worker, may come later than the word that the execution is over. */
const LAST_OUTPUT_MS = 2_000;
const NEWLINE = 10;

const STREAMS = ["stdout", "stderr"] as const;
type Stream = (typeof STREAMS)[number];

export interface Request {
  number: number;
  code: string;
  env: Record<string, string>;
  /** Shows the text of strings with their quotes, as notebooks do; clients of the run-code call expect none. */
  quotes?: boolean;
  /** Interrupts the execution after this time. */
  timeoutMs: number | null;
}

export interface Outcome {
  /** How the process ended, when it did; the context needs a new one. */
  died: string | null;
  /** The execution was interrupted because its time was up. */
  isLate: boolean;
}

interface Execution {
  request: Request;
  listener: Listener;
  outputs: Record<Stream, MarkedOutput>;
  /** Streams whose last mark has not come. */
  open: Set<Stream>;
  /** Text of each stream that waits for a result: each piece after the first comes after one more fence. */
  pieces: Record<Stream, string[]>;
  /** Results and errors that wait for their fences on all streams. */
  held: Message[];
  bytes: number;
  /** The code runs; an interrupt before that would have no effect. */
  hasBegun: boolean;
  isInterrupted: boolean;
  isDone: boolean;
  isLate: boolean;
  settle(died: string | null): void;
}

export class Worker {
  readonly #child: ChildProcess;
  readonly #channel: Duplex;
  readonly #guard: ChildProcess | null;
  #line: Buffer[] = [];
  #lineBytes = 0;
  #execution: Execution | null = null;
  #died: string | null = null;

  constructor({ argv, source }: Language, cwd: string) {
    const [program = "", ...args] = argv;
    this.#child = spawn(program, args, { cwd, stdio: ["ignore", "pipe", "pipe", "pipe"], detached: true });
    this.#guard = this.#child.pid === undefined ? null : guardOf(this.#child.pid);
    this.#channel = this.#child.stdio[3] as Duplex;
    this.#channel.on("error", () => {}); // the worker has closed the channel or ended; `exit` tells
    this.#channel.on("data", (chunk: Buffer) => this.#read(chunk));
    this.#channel.on("close", () => this.kill());
    for (const name of STREAMS) this.#output(name).on("data", (chunk: Buffer) => this.#take(name, chunk));
    this.#child.on("error", (error) => this.#ended(`could not be started: ${error.message}`));
    this.#child.on("exit", (code, signal) =>
      this.#ended(signal ? `ended by ${signal}` : `ended with exit code ${code}`),
    );
    this.#send(source);
  }

  get isAlive(): boolean {
    return this.#died === null;
  }

  /** Runs one execution; the caller waits for its end before the next. */
  async run(request: Request, listener: Listener): Promise<Outcome> {
    if (this.#died !== null) return { died: this.#died, isLate: false };
    const mark = `\0${randomBytes(16).toString("hex")}`;
    const { number, code, env, quotes = false, timeoutMs } = request;
    const timers = new Set<NodeJS.Timeout>();
    const stop = (): void => this.#interrupt(timers);
    try {
      return await new Promise<Outcome>((resolve) => {
        const outputs = { stdout: new MarkedOutput(mark), stderr: new MarkedOutput(mark) };
        const execution: Execution = {
          request,
          listener,
          outputs,
          open: new Set(STREAMS),
          pieces: { stdout: [""], stderr: [""] },
          held: [],
          bytes: 0,
          hasBegun: false,
          isInterrupted: false,
          isDone: false,
          isLate: false,
          settle: (died) => {
            this.#tellRest(execution);
            resolve({ died, isLate: execution.isLate });
          },
        };
        this.#execution = execution;
        listener.signal.addEventListener("abort", stop, { once: true });
        if (timeoutMs !== null)
          timers.add(
            setTimeout(() => {
              execution.isLate = true;
              stop();
            }, timeoutMs),
          );
        this.#send({ number, code, env, quotes, mark });
        if (listener.signal.aborted) stop();
      });
    } finally {
      this.#execution = null;
      listener.signal.removeEventListener("abort", stop);
      for (const timer of timers) clearTimeout(timer);
      this.#flow(true);
    }
  }

  /** Interrupts the code that runs now. */
  interrupt(): void {
    if (this.#execution) this.#interrupt(new Set());
  }

  /** Ends the worker with every process that its code has started. */
  kill(): void {
    const { pid } = this.#child;
    if (pid === undefined || this.#died !== null) return;
    for (const each of familyOf(pid).keys()) signalTo(each, "SIGKILL");
    signalTo(-pid, "SIGKILL");
  }

  #output(name: Stream): Readable {
    return this.#child[name] as Readable;
  }

  #send(message: unknown): void {
    this.#channel.write(`${JSON.stringify(message)}\n`);
  }

  /** Like Ctrl-C in a terminal: the worker and the processes that its code waits for. */
  #interrupt(timers: Set<NodeJS.Timeout>): void {
    const { pid } = this.#child;
    if (pid === undefined || this.#died !== null) return;
    const execution = this.#execution;
    if (execution) execution.isInterrupted = true;
    if (execution?.hasBegun) signalTo(-pid, "SIGINT");
    const kill = (): void => {
      if (this.#execution === execution) this.kill();
    };
    timers.add(setTimeout(kill, INTERRUPT_GRACE_MS).unref());
  }

  #read(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.#line.push(chunk.subarray(start, end));
      const line = Buffer.concat(this.#line).toString("utf8");
      this.#line = [];
      this.#lineBytes = 0;
      start = end + 1;
      this.#message(line);
    }
    this.#line.push(chunk.subarray(start));
    this.#lineBytes += chunk.byteLength - start;
    if (this.#lineBytes > LINE_BYTES_MAX) this.#refuse(`sent a result of more than ${LINE_BYTES_MAX} bytes`);
  }

  /** The code of the context can write to the channel, too: a message counts only in its proper form. */
  #message(line: string): void {
    const execution = this.#execution;
    if (!execution || execution.isDone) return;
    const message = parsed(line);
    if (message?.type === "result" && isRecord(message.data)) {
      if (this.#mayAdd(execution, line.length))
        this.#hold(execution, { type: "result", isMain: message.main === true, data: message.data }, message.unfenced);
    } else if (message?.type === "error") {
      const { name, value, traceback } = message;
      if (execution.isLate) return;
      this.#hold(execution, errorMessage(String(name), String(value), String(traceback)), message.unfenced);
    } else if (message?.type === "begun") {
      execution.hasBegun = true;
      const { pid } = this.#child;
      if (execution.isInterrupted && pid !== undefined) signalTo(-pid, "SIGINT");
    } else if (message?.type === "done") {
      const { number, marked } = message;
      if (number !== execution.request.number) return;
      if (Array.isArray(marked))
        for (const [index, name] of STREAMS.entries()) if (!marked.includes(index + 1)) execution.open.delete(name);
      this.#release(execution);
      execution.isDone = true;
      setTimeout(() => execution.settle(null), LAST_OUTPUT_MS).unref();
      this.#settleWhenOver(execution);
    } else this.#refuse("sent a message that is none of the interpreter's");
  }

  #take(name: Stream, chunk: Buffer): void {
    const execution = this.#execution;
    if (!execution) return; // output between executions belongs to nobody
    const output = execution.outputs[name];
    this.#add(execution, name, output.take(chunk));
    if (output.ended) execution.open.delete(name);
    this.#release(execution);
    if (output.ended) this.#settleWhenOver(execution);
  }

  #add(execution: Execution, name: Stream, [first = "", ...more]: string[]): void {
    const chars = more.reduce((sum, text) => sum + text.length, first.length);
    const mayAdd = chars === 0 || this.#mayAdd(execution, chars);
    const pieces = execution.pieces[name];
    pieces.push(`${pieces.pop() ?? ""}${mayAdd ? first : ""}`, ...more.map((text) => (mayAdd ? text : "")));
  }

  /** A result waits for the output before it. `unfenced`: descriptors that the code has closed. */
  #hold(execution: Execution, message: Message, unfenced: unknown): void {
    execution.held.push(message);
    if (Array.isArray(unfenced))
      for (const [index, name] of STREAMS.entries()) if (unfenced.includes(index + 1)) execution.pieces[name].push("");
    this.#release(execution);
  }

  /** Tells output up to the next fence, and the result behind it once all streams have come to that fence. */
  #release(execution: Execution): void {
    const { held, pieces, open } = execution;
    for (;;) {
      for (const name of STREAMS) this.#tellText(name, pieces[name].splice(0, 1, "")[0] ?? "");
      const isFenced = [...open].every((name) => pieces[name].length > 1);
      const message = isFenced ? held.shift() : undefined;
      if (message === undefined) return;
      this.#tell(message);
      for (const name of STREAMS) if (pieces[name].length > 1) pieces[name].shift();
    }
  }

  #tellRest(execution: Execution): void {
    execution.open.clear();
    this.#release(execution);
    for (const name of STREAMS) this.#tellText(name, execution.pieces[name].join(""));
  }

  #tellText(type: Stream, text: string): void {
    for (let at = 0; at < text.length; ) {
      const end = endOfPart(text, at);
      this.#tell({ type, text: text.slice(at, end), timestamp: Date.now() });
      at = end;
    }
  }

  /** False once the execution has written too much; the caller is told at the first refusal. */
  #mayAdd(execution: Execution, bytes: number): boolean {
    const before = execution.bytes;
    execution.bytes += bytes;
    if (execution.bytes <= OUTPUT_BYTES_MAX) return true;
    if (before <= OUTPUT_BYTES_MAX) {
      const text = `[output beyond ${OUTPUT_BYTES_MAX} bytes is discarded]\n`;
      this.#tell({ type: "stderr", text, timestamp: Date.now() });
    }
    return false;
  }

  #tell(message: Message): void {
    const listener = this.#execution?.listener;
    if (!listener || listener.signal.aborted || listener.tell(message)) return;
    this.#flow(false);
    void listener.drained().then(() => this.#flow(true));
  }

  #flow(flows: boolean): void {
    for (const stream of [this.#output("stdout"), this.#output("stderr"), this.#channel])
      if (flows) stream.resume();
      else stream.pause();
  }

  #settleWhenOver(execution: Execution): void {
    if (execution.isDone && execution.open.size === 0) execution.settle(null);
  }

  #refuse(why: string): void {
    this.kill();
    this.#ended(why);
  }

  #ended(how: string): void {
    if (this.#died !== null) return;
    const { pid } = this.#child;
    if (pid !== undefined) signalTo(-pid, "SIGKILL"); // processes that the worker left in its group
    this.#guard?.kill("SIGKILL");
    this.#died = how;
    const execution = this.#execution;
    if (!execution) return;
    const settle = (): void => {
      if (this.#execution !== execution) return;
      for (const name of STREAMS) this.#add(execution, name, [execution.outputs[name].rest()]);
      execution.settle(how);
    };
    // The last output may still be on its way; a process that escaped may hold the stream open for ever.
    this.#child.once("close", settle);
    setTimeout(settle, LAST_OUTPUT_MS).unref();
  }
}

/**
 * Ends the worker's group when this server has ended without doing so: code in an endless loop does not look whether its
 * channel is closed. The guard's standard input ends with the server, however that ends.
 */
function guardOf(pid: number): ChildProcess {
  const guard = spawn("sh", ["-c", 'read -r _; kill -9 "-$0"', String(pid)], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  guard.on("error", () => {}); // a sandbox without a shell has no guards
  guard.stdin?.on("error", () => {}); // the guard was ended by somebody else
  return guard;
}

/** Cuts long text into messages, never between the halves of a character. */
function endOfPart(text: string, start: number): number {
  const end = Math.min(start + TEXT_CHARS_MAX, text.length);
  const last = text.charCodeAt(end - 1);
  return end < text.length && last >= 0xd800 && last < 0xdc00 ? end - 1 : end;
}

function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (errnoOf(error) !== "ESRCH" && errnoOf(error) !== "EPERM") throw error;
  }
}

function parsed(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
