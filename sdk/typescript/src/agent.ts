/** An agent, and the conversations that it remembers. */
import { type Berth, defaultBerth, type WithBerth } from "./berth.ts";
import { urlBelow } from "./core/address.ts";
import type { CallOptions } from "./core/call.ts";
import { isJson } from "./core/errors.ts";
import { type LogLine, type LogOptions, readLogs } from "./logs.ts";

export interface AskOptions extends CallOptions {
  /** The conversation that the agent goes on with. */
  thread?: string | undefined;
  /** Below the agent's address. */
  path?: string | undefined;
}

export type ThreadMessage = Record<string, unknown>;

const THREAD_HEADER = "x-service-thread-id";

export class Agent {
  readonly name: string;
  readonly #berth: Berth;

  constructor(name: string, { berth = defaultBerth() }: WithBerth = {}) {
    this.name = name;
    this.#berth = berth;
  }

  /** The text of the answer: `output` of a JSON answer, or else the whole answer. */
  async ask(inputs: string | Record<string, unknown>, options: AskOptions = {}): Promise<string> {
    const { thread, path = "", ...rest } = options;
    const body = typeof inputs === "string" ? { inputs } : inputs;
    const headers = {
      "content-type": "application/json",
      ...(thread === undefined ? {} : { [THREAD_HEADER]: thread }),
    };
    const request = { ...rest, method: "POST", path, headers, body: JSON.stringify(body) };
    const address = await this.#berth.address("agents", this.name);
    return outputOf(await this.#berth.sendToWorkload(address, request, (response) => response.text()));
  }

  /** Any request to the agent, for answers that are streams. */
  async fetch(path = "", init: RequestInit = {}): Promise<Response> {
    return this.#berth.fetch(urlBelow(await this.#berth.address("agents", this.name), path), init);
  }

  /** A conversation. Whoever knows its id can go on with it: choose one that cannot be guessed. */
  thread(id: string): Thread {
    return new Thread(this, id, this.#berth);
  }

  logs(options: LogOptions = {}): AsyncGenerator<LogLine, void> {
    return readLogs(this.#berth, { resourceType: "agents", workloadIds: this.name }, options);
  }
}

export class Thread {
  readonly id: string;
  readonly #agent: Agent;
  readonly #berth: Berth;

  constructor(agent: Agent, id: string, berth: Berth) {
    this.id = id;
    this.#agent = agent;
    this.#berth = berth;
  }

  ask(inputs: string | Record<string, unknown>, options: Omit<AskOptions, "thread"> = {}): Promise<string> {
    return this.#agent.ask(inputs, { ...options, thread: this.id });
  }

  /** The newest messages, oldest first. */
  async messages(options: CallOptions = {}): Promise<ThreadMessage[]> {
    return (await this.#berth.api.agentThreadGet({ ...options, params: this.#params })).messages;
  }

  async append(messages: readonly ThreadMessage[], options: CallOptions = {}): Promise<void> {
    await this.#berth.api.agentThreadAppend({ ...options, params: this.#params, body: { messages: [...messages] } });
  }

  async delete(options: CallOptions = {}): Promise<void> {
    await this.#berth.api.agentThreadDelete({ ...options, params: this.#params });
  }

  get #params(): { agentName: string; threadId: string } {
    return { agentName: this.#agent.name, threadId: this.id };
  }
}

function outputOf(text: string): string {
  try {
    const answer: unknown = JSON.parse(text);
    if (isJson(answer) && typeof answer.output === "string") return answer.output;
  } catch {
    // Not JSON: the text is the answer.
  }
  return text;
}
