/**
 * A sandbox: an isolated Linux machine.
 *
 *   await using box = await Sandbox.create();
 *   const { stdout, exitCode } = await box.run("npm test");
 */
import { type Berth, defaultBerth, type WithBerth } from "../berth.ts";
import { segment, urlBelow } from "../core/address.ts";
import type { CallOptions } from "../core/call.ts";
import { BerthError } from "../core/errors.ts";
import { randomWord } from "../core/random.ts";
import type { SandboxInput, SandboxRecord } from "../generated/types.ts";
import { type LogLine, type LogOptions, readLogs } from "../logs.ts";
import { McpServer } from "../mcp.ts";
import {
  type CodeContext,
  type CodeExecution,
  type CodeLanguage,
  type CodeOptions,
  createCodeContext,
  runCode,
} from "./code.ts";
import { SandboxDrives } from "./drives.ts";
import { SandboxFiles } from "./files.ts";
import { openPreview, type Preview, type PreviewOptions } from "./preview.ts";
import { type Finished, type ProcessState, processState, SandboxProcess } from "./process.ts";
import { type CommandOptions, type RunOptions, runCommand } from "./run.ts";

export interface SandboxOptions extends CallOptions, WithBerth {
  /** Default: the platform chooses one. */
  name?: string | undefined;
  /** Default: the base image. */
  image?: string | undefined;
  /** One processor core for each 2048. */
  memoryMb?: number | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  /** Variables whose values are masked in every answer. */
  secrets?: Readonly<Record<string, string>> | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
  /** Deletes the sandbox this long after its creation, such as `30m` or `24h`. */
  ttl?: string | undefined;
  volumes?: readonly { name: string; mountPath: string; readOnly?: boolean }[] | undefined;
  /** Members of the record that have no option here. */
  spec?: SandboxInput["spec"];
}

export interface StartOptions extends CommandOptions, CallOptions {
  /** To find it by. Default: the platform chooses one. */
  name?: string | undefined;
  /** Resolves when all of these ports are open. */
  waitForPorts?: readonly number[] | undefined;
  /** Keeps the sandbox awake while it runs. */
  keepAlive?: boolean | undefined;
  /** Its standard input is what `write` sends. */
  stdin?: boolean | undefined;
}

export interface ForkOptions extends CallOptions {
  /** Default: this name and a random word. */
  name?: string | undefined;
  /** The files as they were then. Default: as they are now. */
  snapshotId?: string | undefined;
}

/** Longest name of a resource. */
const NAME_MAX = 49;

export class Sandbox {
  readonly name: string;
  readonly files: SandboxFiles;
  readonly drives: SandboxDrives;
  /** The tools that the sandbox offers to agents. */
  readonly tools: McpServer;
  /** Its address, for requests with the caller's credentials. */
  readonly address: string;
  readonly #berth: Berth;
  #record: SandboxRecord;

  private constructor(berth: Berth, address: string, record: SandboxRecord) {
    this.#berth = berth;
    this.#record = record;
    this.name = record.metadata.name;
    this.address = address;
    this.files = new SandboxFiles(berth, address);
    this.drives = new SandboxDrives(berth, address);
    this.tools = new McpServer(record.metadata.name, { berth, address });
  }

  /** Creates a sandbox and waits until it runs. */
  static async create(options: SandboxOptions = {}): Promise<Sandbox> {
    const { berth = defaultBerth(), signal, timeoutMs, idempotencyKey } = options;
    const body = inputOf(options);
    return opened(berth, await berth.api.sandboxCreate({ signal, timeoutMs, idempotencyKey, body }));
  }

  /** The sandbox of this name; throws `not_found` when there is none. */
  static async get(name: string, options: CallOptions & WithBerth = {}): Promise<Sandbox> {
    const { berth = defaultBerth(), ...rest } = options;
    return opened(berth, await berth.api.sandboxGet({ ...rest, params: { sandboxName: name } }));
  }

  /** The sandbox of this name, created when there is none. */
  static async getOrCreate(options: SandboxOptions & { name: string }): Promise<Sandbox> {
    try {
      return await Sandbox.get(options.name, options);
    } catch (error) {
      if (!(error instanceof BerthError && error.status === 404)) throw error;
    }
    try {
      return await Sandbox.create(options);
    } catch (error) {
      // Another caller has created it in this moment.
      if (error instanceof BerthError && error.status === 409) return Sandbox.get(options.name, options);
      throw error;
    }
  }

  /** Every sandbox of the workspace. */
  static async *list(options: CallOptions & WithBerth = {}): AsyncGenerator<Sandbox, void> {
    const { berth = defaultBerth(), ...rest } = options;
    for await (const record of berth.api.sandboxList(rest)) yield opened(berth, record);
  }

  /** As it was when it was read last. */
  get record(): SandboxRecord {
    return this.#record;
  }

  /** Reads the record again. */
  async refresh(options: CallOptions = {}): Promise<SandboxRecord> {
    this.#record = await this.#berth.api.sandboxGet({ ...options, params: { sandboxName: this.name } });
    return this.#record;
  }

  /** Runs a command with `sh -c` to its end. An exit code other than 0 is a result, not an error. */
  run(command: string, options: RunOptions = {}): Promise<Finished> {
    return runCommand(this.#berth, this.address, command, options);
  }

  /**
   * Runs code in the interpreter of a sandbox with the image `service/code-interpreter`. Variables stay for the next
   * call.
   */
  runCode(code: string, options: CodeOptions = {}): Promise<CodeExecution> {
    return runCode(this.#berth, this.address, code, options);
  }

  /** A context of its own for `runCode`. */
  createCodeContext(
    options: { language?: CodeLanguage | undefined; cwd?: string | undefined } & CallOptions = {},
  ): Promise<CodeContext> {
    return createCodeContext(this.#berth, this.address, options);
  }

  /** Starts a command in the background. */
  async start(command: string, options: StartOptions = {}): Promise<SandboxProcess> {
    const { cwd, env, name, waitForPorts, keepAlive, stdin, ...rest } = options;
    const body = { command, name, workingDir: cwd, env, waitForPorts, keepAlive, stdin };
    const answer = await this.#berth.askWorkload(this.address, { ...rest, method: "POST", path: "/process", body });
    return new SandboxProcess(this.#berth, this.address, processState(answer));
  }

  /** A process by its name or pid. */
  async process(id: string, options: CallOptions = {}): Promise<SandboxProcess> {
    const path = `/process/${segment("id", id)}`;
    const answer = await this.#berth.askWorkload(this.address, { ...options, path });
    return new SandboxProcess(this.#berth, this.address, processState(answer));
  }

  async processes(options: CallOptions = {}): Promise<ProcessState[]> {
    const answer = await this.#berth.askWorkload(this.address, { ...options, path: "/process" });
    return Array.isArray(answer) ? answer.map(processState) : [];
  }

  /** What its processes have written, oldest first. */
  logs(options: LogOptions = {}): AsyncGenerator<LogLine, void> {
    return readLogs(this.#berth, { resourceType: "sandboxes", workloadIds: this.name }, options);
  }

  /** A new sandbox with the files of this one. */
  async fork(options: ForkOptions = {}): Promise<Sandbox> {
    const { name, snapshotId, ...rest } = options;
    const targetName = name ?? `${this.name.slice(0, NAME_MAX - 9)}-${randomWord(8)}`;
    await this.#berth.api.sandboxFork({
      ...rest,
      params: { sandboxName: this.name },
      body: { targetName, ...(snapshotId === undefined ? {} : { snapshotId }) },
    });
    return Sandbox.get(targetName, { ...rest, berth: this.#berth });
  }

  /** Keeps the files as they are now; `fork({ snapshotId })` starts from them. */
  async snapshot(name?: string, options: CallOptions = {}): Promise<string> {
    const body = name === undefined ? {} : { name };
    const made = await this.#berth.api.snapshotCreate({ ...options, params: { sandboxName: this.name }, body });
    return made.id;
  }

  /** An address of its own for a port, for browsers and people without a key. */
  preview(port: number, options: PreviewOptions = {}): Promise<Preview> {
    return openPreview(this.#berth, this.name, port, options);
  }

  /** Sends a request to a port, with the caller's credentials. */
  async fetch(port: number, path = "/", init: RequestInit = {}): Promise<Response> {
    return this.#berth.fetch(urlBelow(`${this.address}/port/${segment("port", String(port))}`, path), init);
  }

  /** Deletes the sandbox and its files. One that is gone already is no error. */
  async delete(options: CallOptions = {}): Promise<void> {
    try {
      await this.#berth.api.sandboxDelete({ ...options, params: { sandboxName: this.name } });
    } catch (error) {
      if (!(error instanceof BerthError && error.status === 404)) throw error;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.delete();
  }

  /** @internal */
  static of(berth: Berth, address: string, record: SandboxRecord): Sandbox {
    return new Sandbox(berth, address, record);
  }
}

async function opened(berth: Berth, record: SandboxRecord): Promise<Sandbox> {
  const { url } = await berth.connection();
  const { workspace, name } = record.metadata;
  const address = `${url}/${segment("workspace", workspace)}/sandboxes/${segment("name", name)}`;
  return Sandbox.of(berth, address, record);
}

function inputOf({
  name,
  image,
  memoryMb,
  env = {},
  secrets = {},
  labels,
  ttl,
  volumes,
  spec,
}: SandboxOptions): SandboxInput {
  const envs = [
    ...(spec?.runtime?.envs ?? []),
    ...Object.entries(env).map(([key, value]) => ({ name: key, value })),
    ...Object.entries(secrets).map(([key, value]) => ({ name: key, value, secret: true })),
  ];
  return {
    metadata: { ...(name === undefined ? {} : { name }), ...(labels === undefined ? {} : { labels: { ...labels } }) },
    spec: {
      ...spec,
      runtime: {
        ...spec?.runtime,
        ...(image === undefined ? {} : { image }),
        ...(memoryMb === undefined ? {} : { memory: memoryMb }),
        ...(ttl === undefined ? {} : { ttl }),
        ...(envs.length === 0 ? {} : { envs }),
      },
      ...(volumes === undefined ? {} : { volumes: [...volumes] }),
    },
  };
}
