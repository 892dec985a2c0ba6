/** One context: a language, a folder, and the variables that earlier executions left. Executions run one at a time. */
import { ApiError } from "../http/api-error.ts";
import { CodeProblem } from "./javascript.ts";
import type { Language } from "./languages.ts";
import { errorMessage, type Listener } from "./wire.ts";
import { type Request, Worker } from "./worker.ts";

/** Executions that wait for their turn in one context. */
const WAITING_MAX = 64;

export interface ExecuteRequest extends Omit<Request, "number"> {
  /** False: the execution has the number of the one before. */
  isCounted?: boolean;
}

export class Context {
  readonly id: string;
  readonly language: Language;
  readonly cwd: string;
  #worker: Worker | null = null;
  /** Counted executions since the last restart; clients see this number. */
  #executions = 0;
  /** All executions; the worker tells the end of an execution by this number. */
  #runs = 0;
  #waiting = 0;
  #lastActivity = new Date();
  #last: Promise<void> = Promise.resolve();
  /** Why the worker was ended by a client; null while it was not. */
  #endedFor: string | null = null;

  constructor(id: string, language: Language, cwd: string) {
    this.id = id;
    this.language = language;
    this.cwd = cwd;
  }

  /** Whether an execution runs or waits. */
  get isBusy(): boolean {
    return this.#waiting > 0;
  }

  get lastActivity(): Date {
    return this.#lastActivity;
  }

  /** Resolves when the execution is over. Whatever becomes of the code is told to the listener. */
  async execute(request: ExecuteRequest, listener: Listener): Promise<void> {
    if (this.#waiting >= WAITING_MAX)
      throw new ApiError(429, `${WAITING_MAX} executions wait in this context already; make another context.`);
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    this.#waiting += 1;
    try {
      await before;
      if (!listener.signal.aborted) await this.#run(request, listener);
    } finally {
      this.#waiting -= 1;
      this.#lastActivity = new Date();
      resolve();
    }
  }

  interrupt(): void {
    this.#worker?.interrupt();
  }

  /** The next execution starts with no variables. */
  restart(why = "The context was restarted."): void {
    this.#executions = 0;
    this.#runs = 0;
    this.#endedFor = why;
    this.#worker?.kill();
    this.#worker = null;
  }

  async #run(request: ExecuteRequest, listener: Listener): Promise<void> {
    const { isCounted = true, ...rest } = request;
    if (isCounted) this.#executions += 1;
    this.#runs += 1;
    this.#endedFor = null;
    const number = this.#runs;
    listener.tell({ type: "number_of_executions", execution_count: this.#executions });
    const code = this.#prepared(request.code, listener);
    if (code === null) return;
    if (!this.#worker?.isAlive) this.#worker = new Worker(this.language, this.cwd);
    const worker = this.#worker;
    const { died, isLate } = await worker.run({ ...rest, code, number }, listener);
    const gone = died === null ? "" : " Its variables are gone; the next execution starts a new process.";
    if (isLate) listener.tell(errorMessage("TimeoutError", `The code ran for ${request.timeoutMs} ms.${gone}`));
    else if (died !== null && this.#endedFor !== null) listener.tell(errorMessage("ContextRestarted", this.#endedFor));
    else if (died !== null) listener.tell(errorMessage("ContextDied", `The process of the context ${died}.${gone}`));
  }

  #prepared(code: string, listener: Listener): string | null {
    try {
      return this.language.prepare(code);
    } catch (error) {
      if (!(error instanceof CodeProblem)) throw error;
      listener.tell(errorMessage(error.name, error.message, error.stack));
      return null;
    }
  }
}
