/**
 * A context as clients of the Jupyter kernel protocol see it. Every connected client is told what any of them runs. An
 * execution goes on when its client goes away, in contrast to the run-code call.
 */
import { toApiError } from "../../http/api-error.ts";
import type { Context } from "../context.ts";
import type { Listener, Message } from "../wire.ts";
import { isRecord, type KernelMessage, type KernelRequest, messageOf } from "./message.ts";
import { kernelNameOf } from "./specs.ts";

type Content = Record<string, unknown>;

/** A connection to the kernel. */
export interface KernelClient {
  send(message: KernelMessage): void;
  /** The client reads more slowly than messages come. A client that has gone is not behind. */
  readonly isBehind: boolean;
  /** Resolves when the client has read what was sent, or has gone. */
  drained(): Promise<void>;
  close(): void;
}

/** An execution that has not ended. */
interface Execution {
  leaving: AbortController;
  hasStarted: boolean;
}

export class Kernel {
  readonly context: Context;
  readonly #clients = new Set<KernelClient>();
  readonly #executions = new Set<Execution>();

  constructor(context: Context) {
    this.context = context;
  }

  /** The kernel in answers of the REST API. */
  get model(): Content {
    const { id, language, lastActivity, isBusy } = this.context;
    return {
      ...{ id, name: kernelNameOf(language), last_activity: lastActivity.toISOString() },
      ...{ execution_state: isBusy ? "busy" : "idle", connections: this.#clients.size },
    };
  }

  get connections(): number {
    return this.#clients.size;
  }

  attach(client: KernelClient): void {
    this.#clients.add(client);
  }

  detach(client: KernelClient): void {
    this.#clients.delete(client);
  }

  /** Tells every client, as messages of `iopub`. */
  publish(request: KernelRequest, type: string, content: Content): void {
    const message = messageOf("iopub", type, request.header, content);
    for (const client of this.#clients) client.send(message);
  }

  /** Does the work of a request between the words `busy` and `idle`; every request has both. */
  async during(request: KernelRequest, work: () => Promise<void> | void): Promise<void> {
    this.publish(request, "status", { execution_state: "busy" });
    try {
      await work();
    } finally {
      this.publish(request, "status", { execution_state: "idle" });
    }
  }

  /** Runs code and returns the content of its `execute_reply`. */
  async execute(request: KernelRequest, client: KernelClient): Promise<Content> {
    const {
      code = "",
      silent,
      store_history: isStored,
      stop_on_error: stops,
      user_expressions: asked,
    } = request.content;
    if (typeof code !== "string") return failure("TypeError", '"code" must be a string.');
    const execution: Execution = { leaving: new AbortController(), hasStarted: false };
    const isSilent = silent === true;
    const answer: Content = { status: "ok", execution_count: 0 };
    const tell = (message: Message): void => {
      if (message.type === "number_of_executions") {
        execution.hasStarted = true;
        answer.execution_count = message.execution_count;
      }
      const [type, content] = outputOf(message, code, answer.execution_count);
      if (type === "error") {
        Object.assign(answer, { status: "error", ...content });
        if (stops !== false) this.#abortWaiting();
      }
      if (type !== null && !isSilent) this.publish(request, type, content);
    };
    const listener: Listener = {
      signal: execution.leaving.signal,
      drained: () => client.drained(),
      tell(message) {
        tell(message);
        return !client.isBehind;
      },
    };
    const isCounted = !isSilent && isStored !== false;
    this.#executions.add(execution);
    try {
      await this.context.execute({ code, env: {}, quotes: true, timeoutMs: null, isCounted }, listener);
    } catch (error) {
      return failure("Refused", toApiError(error).message);
    } finally {
      this.#executions.delete(execution);
    }
    if (!execution.hasStarted) return { status: "aborted" };
    return { ...answer, payload: [], user_expressions: refused(asked) };
  }

  interrupt(): void {
    this.context.interrupt();
  }

  restart(): void {
    this.#abortWaiting();
    this.context.restart();
  }

  /** Ends the connections of a kernel that is no more. */
  close(): void {
    this.#abortWaiting();
    for (const client of this.#clients) client.close();
  }

  #abortWaiting(): void {
    for (const execution of this.#executions) if (!execution.hasStarted) execution.leaving.abort();
  }
}

/** The message of `iopub` that tells of an output; null for what has none. */
function outputOf(message: Message, code: string, count: unknown): [type: string | null, content: Content] {
  switch (message.type) {
    case "stdout":
    case "stderr":
      return ["stream", { name: message.type, text: message.text }];
    case "result": {
      const { data } = message;
      if (message.isMain) return ["execute_result", { execution_count: count, data, metadata: {} }];
      return ["display_data", { data, metadata: {}, transient: {} }];
    }
    case "error": {
      const { name, value, traceback } = message;
      return ["error", { ename: name, evalue: value, traceback: traceback.trimEnd().split("\n") }];
    }
    case "number_of_executions":
      return ["execute_input", { code, execution_count: count }];
    default:
      return [null, {}];
  }
}

export const failure = (ename: string, evalue: string): Content => ({
  ...{ status: "error", ename, evalue, traceback: [`${ename}: ${evalue}`] },
});

/** Expressions beside the code are not evaluated; each is told so. */
function refused(expressions: unknown): Content {
  const names = isRecord(expressions) ? Object.keys(expressions) : [];
  const why = failure("NotImplementedError", "User expressions are not evaluated; send them as code.");
  return Object.fromEntries(names.map((name) => [name, why]));
}
