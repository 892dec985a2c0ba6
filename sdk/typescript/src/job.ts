/**
 * A job: one program that runs many times, each time with other arguments.
 *
 *   const { status, stats } = await new Job("thumbnails").run([{ page: 1 }, { page: 2 }]).wait({ onProgress });
 */
import { type Berth, defaultBerth, type WithBerth } from "./berth.ts";
import type { CallOptions, Items } from "./core/call.ts";
import { idempotencyKey } from "./core/random.ts";
import { poll } from "./core/wait.ts";
import type { Api } from "./generated/api.ts";
import type { JobInput } from "./generated/types.ts";
import { type LogLine, type LogOptions, readLogs } from "./logs.ts";

type Listed<List> = List extends Items<infer Item> ? Item : never;

export type ExecutionRecord = Awaited<ReturnType<Api["jobExecutionGet"]>>;
export type TaskRecord = Listed<ReturnType<Api["jobExecutionTaskList"]>>;

export interface JobOptions extends CallOptions, WithBerth {
  name: string;
  /** The program and its arguments. Default: the image's own. */
  command?: readonly string[] | undefined;
  /** Default: the base image. */
  image?: string | undefined;
  memoryMb?: number | undefined;
  /** How often a failed task is tried again. */
  maxRetries?: number | undefined;
  /** Seconds for one attempt. */
  timeoutSeconds?: number | undefined;
  maxConcurrentTasks?: number | undefined;
  env?: Readonly<Record<string, string>> | undefined;
}

export interface JobRunOptions extends CallOptions {
  /** Added to the variables of the job. */
  env?: Readonly<Record<string, string>> | undefined;
  memoryMb?: number | undefined;
  /** The same id again leads to the same execution. Default: a new one. */
  executionId?: string | undefined;
}

export interface WaitOptions extends CallOptions {
  /** Called whenever the numbers have changed. */
  onProgress?: ((execution: ExecutionRecord) => void) | undefined;
}

const BASE_IMAGE = "service/base-image:latest";
const LOOK_FIRST_MS = 100;
const LOOK_MOST_MS = 1000;

export class Job {
  readonly name: string;
  readonly #berth: Berth;

  constructor(name: string, { berth = defaultBerth() }: WithBerth = {}) {
    this.name = name;
    this.#berth = berth;
  }

  static async create(options: JobOptions): Promise<Job> {
    const { berth = defaultBerth(), name, signal, timeoutMs, idempotencyKey: key } = options;
    const body: JobInput = { metadata: { name }, spec: { runtime: runtimeOf(options) } };
    await berth.api.jobCreate({ signal, timeoutMs, idempotencyKey: key, body });
    return new Job(name, { berth });
  }

  /** Starts one task for each set of arguments. `await` gives the execution, `.wait()` its end. */
  run(tasks: readonly Record<string, unknown>[] = [{}], options: JobRunOptions = {}): StartedExecution {
    return new StartedExecution(this.#start(tasks, options));
  }

  execution(id: string): Execution {
    return new Execution(this.#berth, this.name, id);
  }

  /** Newest first. */
  executions(options: CallOptions = {}): Items<ExecutionRecord> {
    return this.#berth.api.jobExecutionList({ ...options, params: { jobId: this.name } });
  }

  async delete(options: CallOptions = {}): Promise<void> {
    await this.#berth.api.jobDelete({ ...options, params: { jobId: this.name } });
  }

  async #start(tasks: readonly Record<string, unknown>[], options: JobRunOptions): Promise<Execution> {
    const { env, memoryMb, executionId = idempotencyKey(), ...rest } = options;
    const body = {
      tasks: [...tasks],
      executionId,
      ...(env === undefined ? {} : { env: { ...env } }),
      ...(memoryMb === undefined ? {} : { memory: memoryMb }),
    };
    const made = await this.#berth.api.jobExecutionCreate({ ...rest, params: { jobId: this.name }, body });
    return new Execution(this.#berth, this.name, made.id);
  }
}

/** An execution that is being started. */
export class StartedExecution implements PromiseLike<Execution> {
  readonly #execution: Promise<Execution>;

  constructor(execution: Promise<Execution>) {
    this.#execution = execution;
  }

  async wait(options: WaitOptions = {}): Promise<ExecutionRecord> {
    return (await this.#execution).wait(options);
  }

  // biome-ignore lint/suspicious/noThenProperty: `await job.run(tasks)` is the execution
  then<Result = Execution, Failure = never>(
    done?: ((execution: Execution) => Result | PromiseLike<Result>) | null,
    failed?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Result | Failure> {
    return this.#execution.then(done, failed);
  }
}

export class Execution {
  readonly id: string;
  readonly #berth: Berth;
  readonly #job: string;

  constructor(berth: Berth, job: string, id: string) {
    this.#berth = berth;
    this.#job = job;
    this.id = id;
  }

  /** Status and numbers, without the tasks. */
  read(options: CallOptions = {}): Promise<ExecutionRecord> {
    return this.#berth.api.jobExecutionGet({ ...options, params: this.#params, query: { inlineTasks: false } });
  }

  /** Waits for the end. Failed tasks are a result, not an error: `status` and `stats` tell. */
  async wait({ onProgress, ...options }: WaitOptions = {}): Promise<ExecutionRecord> {
    let told = "";
    const look = async (): Promise<ExecutionRecord | undefined> => {
      const record = await this.read(options);
      const numbers = JSON.stringify([record.status, record.stats]);
      if (numbers !== told) onProgress?.(record);
      told = numbers;
      return record.metadata.completedAt === undefined ? undefined : record;
    };
    return poll(look, { firstMs: LOOK_FIRST_MS, mostMs: LOOK_MOST_MS, signal: options.signal });
  }

  /** Every task, with its times and, when it failed, the reason. */
  tasks(options: CallOptions = {}): Items<TaskRecord> {
    return this.#berth.api.jobExecutionTaskList({ ...options, params: this.#params });
  }

  logs(options: LogOptions & { task?: number } = {}): AsyncGenerator<LogLine, void> {
    const { task, ...rest } = options;
    const subject = { resourceType: "jobs", workloadIds: this.#job, executionId: this.id };
    return readLogs(this.#berth, { ...subject, ...(task === undefined ? {} : { taskId: String(task) }) }, rest);
  }

  /** What has not started never will, what runs may finish. */
  async cancel(options: CallOptions = {}): Promise<void> {
    await this.#berth.api.jobExecutionDelete({ ...options, params: this.#params });
  }

  get #params(): { jobId: string; executionId: string } {
    return { jobId: this.#job, executionId: this.id };
  }
}

function runtimeOf(options: JobOptions): NonNullable<NonNullable<JobInput["spec"]>["runtime"]> {
  const { image = BASE_IMAGE, command, memoryMb, maxRetries, timeoutSeconds, maxConcurrentTasks, env } = options;
  return {
    image,
    ...(command === undefined ? {} : { command: [...command] }),
    ...(memoryMb === undefined ? {} : { memory: memoryMb }),
    ...(maxRetries === undefined ? {} : { maxRetries }),
    ...(timeoutSeconds === undefined ? {} : { timeout: timeoutSeconds }),
    ...(maxConcurrentTasks === undefined ? {} : { maxConcurrentTasks }),
    ...(env === undefined ? {} : { envs: Object.entries(env).map(([name, value]) => ({ name, value })) }),
  };
}
