/** A process of a sandbox that runs in the background. */
import type { Berth } from "../berth.ts";
import { segment } from "../core/address.ts";
import type { CallOptions } from "../core/call.ts";
import { BerthError, isJson } from "../core/errors.ts";
import { linesOf } from "../core/lines.ts";

export interface ProcessState {
  pid: string;
  name: string;
  command: string;
  status: "running" | "completed" | "failed" | "stopped" | "killed";
  /** Null while the process runs; -1 after a death by signal. */
  exitCode: number | null;
  workingDir: string;
}

export interface OutputLine {
  stream: "stdout" | "stderr";
  text: string;
}

export interface Finished {
  exitCode: number;
  stdout: string;
  stderr: string;
}

export class SandboxProcess {
  readonly pid: string;
  readonly name: string;
  readonly command: string;
  readonly #berth: Berth;
  readonly #address: string;

  constructor(berth: Berth, address: string, { pid, name, command }: ProcessState) {
    this.#berth = berth;
    this.#address = address;
    this.pid = pid;
    this.name = name;
    this.command = command;
  }

  async state(options: CallOptions = {}): Promise<ProcessState> {
    return processState(await this.#ask("", options));
  }

  /** The lines that it has printed and prints, until it ends. */
  async *logs(options: CallOptions = {}): AsyncGenerator<OutputLine, void> {
    const path = `${this.#path}/logs/stream`;
    const response = await this.#berth.sendToWorkload(this.#address, { ...options, path }, async (answer) => answer);
    for await (const line of linesOf(response, options.signal)) {
      const [, stream, text] = /^(stdout|stderr):(.*)$/s.exec(line) ?? [];
      if (stream !== undefined) yield { stream: stream === "stderr" ? "stderr" : "stdout", text: text ?? "" };
    }
  }

  /** Waits for the end; resolves with its exit code and everything it has printed. */
  async wait(options: CallOptions = {}): Promise<Finished> {
    for await (const _ of this.logs(options));
    const [state, output] = await Promise.all([this.state(options), this.#ask("/logs", options)]);
    const { stdout = "", stderr = "" } = output as { stdout?: string; stderr?: string };
    return { exitCode: state.exitCode ?? -1, stdout, stderr };
  }

  /** Writes to its standard input, which `start` has to be asked for with `stdin: true`. */
  async write(data: string | Uint8Array, options: CallOptions & { end?: boolean } = {}): Promise<void> {
    const { end = false, ...rest } = options;
    await this.#berth.askWorkload(this.#address, {
      ...rest,
      method: "POST",
      path: `${this.#path}/stdin${end ? "?end=true" : ""}`,
      headers: { "content-type": "application/octet-stream" },
      body: data,
    });
  }

  /** Asks it and its children to end (SIGTERM). One that has ended is no error. */
  async stop(options: CallOptions = {}): Promise<void> {
    await this.#end("", options);
  }

  /** Ends it and its children at once (SIGKILL). One that has ended is no error. */
  async kill(options: CallOptions = {}): Promise<void> {
    await this.#end("/kill", options);
  }

  get #path(): string {
    return `/process/${segment("pid", this.pid)}`;
  }

  #ask(path: string, options: CallOptions): Promise<unknown> {
    return this.#berth.askWorkload(this.#address, { ...options, path: this.#path + path });
  }

  async #end(path: string, options: CallOptions): Promise<void> {
    await endProcess(this.#berth, this.#address, this.#path + path, options);
  }
}

/** A process that is not running any more is where the caller wants it. */
export async function endProcess(berth: Berth, address: string, path: string, options: CallOptions): Promise<void> {
  try {
    await berth.askWorkload(address, { ...options, method: "DELETE", path, repeatable: true });
  } catch (error) {
    if (!(error instanceof BerthError && error.status === 404)) throw error;
  }
}

export function processState(answer: unknown): ProcessState {
  if (isJson(answer) && typeof answer.pid === "string")
    return {
      ...(answer as unknown as ProcessState),
      exitCode: answer.status === "running" ? null : Number(answer.exitCode),
    };
  throw new BerthError({ code: "not_json", message: "The sandbox did not describe a process." });
}
