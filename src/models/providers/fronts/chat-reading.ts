/** A chat answer or one chunk of it, read as what every front needs, whoever wrote it. */
import { at, isRecord, itemsOf } from "../../../lib/untrusted-json.ts";
import { UntranslatableAnswer } from "../chat-translation.ts";
import { openaiChat } from "../openai/dialects.ts";
import { NO_USAGE, type TokenUsage } from "../token-usage.ts";
import { mergeStates, type ProviderState } from "./provider-state.ts";

export interface ReadCall {
  /** Index of the call within the answer. */
  index: number;
  id: string;
  name: string;
  args: string;
}

export interface ReadAnswer {
  id: string;
  model: string;
  reasoning: string;
  text: string;
  refusal: string;
  calls: ReadCall[];
  state: ProviderState;
  finish: string | null;
  usage: TokenUsage | null;
}

export function readCompletion(answer: unknown): ReadAnswer {
  const choice = itemsOf(at(answer, "choices"))[0];
  if (!isRecord(at(choice, "message"))) throw new UntranslatableAnswer("a chat completion without a message");
  return read(answer, choice, at(choice, "message"));
}

export function readChunk(chunk: unknown): ReadAnswer {
  if (!isRecord(chunk)) throw new UntranslatableAnswer("an event that is not an object");
  const choice = itemsOf(chunk.choices).find((one) => (at(one, "index") ?? 0) === 0);
  return read(chunk, choice, at(choice, "delta"));
}

function read(answer: unknown, choice: unknown, message: unknown): ReadAnswer {
  const calls = itemsOf(at(message, "tool_calls"));
  const extra = at(message, "extra_content");
  let state: ProviderState = isRecord(extra) ? { message: extra } : {};
  for (const call of calls) {
    const [own, id] = [at(call, "extra_content"), at(call, "id")];
    if (isRecord(own) && typeof id === "string") state = mergeStates(state, { calls: { [id]: own } });
  }
  const finish = at(choice, "finish_reason");
  const usage = at(answer, "usage") ?? at(at(answer, "x_groq"), "usage");
  return {
    id: text(at(answer, "id")),
    model: text(at(answer, "model")),
    reasoning: text(at(message, "reasoning_content") ?? at(message, "reasoning")),
    text: contentOf(at(message, "content")),
    refusal: text(at(message, "refusal")),
    calls: calls.map((call, index) => ({
      index: Number(at(call, "index") ?? index),
      id: text(at(call, "id")),
      name: text(at(at(call, "function"), "name")),
      args: text(at(at(call, "function"), "arguments")),
    })),
    state,
    finish: typeof finish === "string" ? finish : null,
    usage: openaiChat.readUsage(usage),
  };
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Some answer in parts, where the thoughts of a model are parts too. */
const contentOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : itemsOf(content)
        .map((part) => (at(part, "type") === "text" ? text(at(part, "text")) : ""))
        .join("");

/** Accumulates a whole chat stream. */
export class ChatReading {
  id = "";
  model: string;
  finish: string | null = null;
  usage: TokenUsage = NO_USAGE;

  constructor(model: string) {
    this.model = model;
  }

  take(chunk: unknown): ReadAnswer {
    const answer = readChunk(chunk);
    this.id ||= answer.id;
    if (answer.model) this.model = answer.model;
    this.finish = answer.finish ?? this.finish;
    this.usage = answer.usage ?? this.usage;
    return answer;
  }
}

/** Letters and digits of an id, behind the letters that the caller's API begins its ids with. */
export const idOf = (prefix: string, chatId: string, suffix = ""): string =>
  `${prefix}${chatId.replace(/^(?:chatcmpl|msg|resp|gen)[-_]/, "").replace(/[^A-Za-z0-9]/g, "") || "0"}${suffix}`;
