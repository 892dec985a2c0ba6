/** A model of the platform. Every provider is asked in the words of OpenAI. */
import { type Berth, defaultBerth, type WithBerth } from "./berth.ts";
import type { CallOptions } from "./core/call.ts";
import { isJson } from "./core/errors.ts";
import { eventsOf } from "./core/lines.ts";
import type { ModelInput } from "./generated/types.ts";
import { type OfficialClass, type OfficialOptions, officialOptions } from "./official.ts";

export interface ChatMessage {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  content?: string | readonly Record<string, unknown>[] | null;
  [member: string]: unknown;
}

/** A question, a conversation, or the whole body of a request. */
export type ChatInput =
  | string
  | readonly ChatMessage[]
  | { messages: readonly ChatMessage[]; [member: string]: unknown };

export interface TokenUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

export interface ChatAnswer {
  /** The text of the first choice. */
  text: string;
  id: string;
  model: string;
  choices: { index: number; finish_reason: string | null; message: ChatMessage }[];
  usage?: TokenUsage;
}

export interface ResponsesAnswer {
  /** The texts of the output, joined. */
  text: string;
  id: string;
  output: { type: string; [member: string]: unknown }[];
  usage?: { input_tokens: number; output_tokens: number; total_tokens: number };
}

export interface ModelOptions extends CallOptions, WithBerth {
  name: string;
  /** The provider: `openai`, `anthropic`, `mock`, … */
  provider: string;
  /** The provider's name of the model. */
  model?: string | undefined;
  /** The integration connection with the provider's key. */
  connection?: string | undefined;
}

export class Model {
  readonly name: string;
  readonly #berth: Berth;

  constructor(name: string, { berth = defaultBerth() }: WithBerth = {}) {
    this.name = name;
    this.#berth = berth;
  }

  static async create({
    berth = defaultBerth(),
    name,
    provider,
    model,
    connection,
    ...options
  }: ModelOptions): Promise<Model> {
    const spec: ModelInput["spec"] = {
      runtime: { type: provider, ...(model === undefined ? {} : { model }) },
      ...(connection === undefined ? {} : { integrationConnections: [connection] }),
    };
    await berth.api.modelCreate({ ...options, body: { metadata: { name }, spec } });
    return new Model(name, { berth });
  }

  /** One answer to a question or a conversation. */
  async chat(input: ChatInput, options: CallOptions = {}): Promise<ChatAnswer> {
    const answer = (await this.#post("/v1/chat/completions", this.#chatBody(input), options)) as Omit<
      ChatAnswer,
      "text"
    >;
    const content = answer.choices[0]?.message.content;
    return { ...answer, text: typeof content === "string" ? content : "" };
  }

  /** The same, with the text as it is written. */
  async *chatStream(input: ChatInput, options: CallOptions = {}): AsyncGenerator<string, void> {
    const body = { ...this.#chatBody(input), stream: true };
    const request = { ...options, method: "POST", path: "/v1/chat/completions", body };
    const address = await this.#address();
    const response = await this.#berth.sendToWorkload(address, request, async (answer) => answer);
    for await (const data of eventsOf(response, options.signal)) {
      if (data === "[DONE]") return;
      const { choices } = JSON.parse(data) as { choices?: { delta?: { content?: string | null } }[] };
      const text = choices?.[0]?.delta?.content;
      if (text) yield text;
    }
  }

  /** OpenAI's Responses API: a text, or the whole body of a request. */
  async responses(input: string | Record<string, unknown>, options: CallOptions = {}): Promise<ResponsesAnswer> {
    const body = { model: this.name, ...(typeof input === "string" ? { input } : input) };
    const answer = (await this.#post("/v1/responses", body, options)) as Omit<ResponsesAnswer, "text">;
    return { ...answer, text: answer.output.flatMap(textsOf).join("") };
  }

  /** One vector for each text. */
  async embeddings(input: string | readonly string[], options: CallOptions = {}): Promise<number[][]> {
    const answer = await this.#post("/v1/embeddings", { model: this.name, input }, options);
    return (answer as { data: { embedding: number[] }[] }).data.map(({ embedding }) => embedding);
  }

  /** The official client: `await model.openai(OpenAI)`. Its `model` may be any name: the record decides. */
  async openai<Client>(client: OfficialClass<Client>, options: Partial<OfficialOptions> = {}): Promise<Client> {
    return new client({ ...officialOptions(this.#berth, `${await this.#address()}/v1`), ...options });
  }

  /** The official client: `await model.anthropic(Anthropic)`. */
  async anthropic<Client>(client: OfficialClass<Client>, options: Partial<OfficialOptions> = {}): Promise<Client> {
    return new client({ ...officialOptions(this.#berth, await this.#address()), ...options });
  }

  async delete(options: CallOptions = {}): Promise<void> {
    await this.#berth.api.modelDelete({ ...options, params: { modelName: this.name } });
  }

  #address(): Promise<string> {
    return this.#berth.address("models", this.name);
  }

  #chatBody(input: ChatInput): Record<string, unknown> {
    if (typeof input === "string") return { model: this.name, messages: [{ role: "user", content: input }] };
    return { model: this.name, ...("messages" in input ? input : { messages: input }) };
  }

  async #post(path: string, body: unknown, options: CallOptions): Promise<unknown> {
    return this.#berth.askWorkload(await this.#address(), { ...options, method: "POST", path, body });
  }
}

function textsOf({ content }: ResponsesAnswer["output"][number]): string[] {
  if (!Array.isArray(content)) return [];
  return content.flatMap((part: unknown) => (isJson(part) && typeof part.text === "string" ? [part.text] : []));
}
