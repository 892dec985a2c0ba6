import { at, isRecord } from "../../../lib/untrusted-json.ts";
import {
  type AnswerContext,
  type ChatStreamTranslation,
  ProviderStreamError,
  UntranslatableAnswer,
} from "../chat-translation.ts";
import { type AnswerHead, type ChatChunk, type ChatDelta, chatChunk, seconds } from "../openai/chat-answer.ts";
import { finishReason } from "./chat-answer.ts";

/** Content blocks are numbered together there; here tool calls have numbers of their own. */
export class MessageStream implements ChatStreamTranslation {
  readonly #context: AnswerContext;
  readonly #head: AnswerHead;
  readonly #callIndexes = new Map<unknown, number>();
  /** Calls whose arguments have not begun: of a tool without parameters they never do. */
  readonly #silent = new Set<unknown>();
  readonly #thinking = new Map<unknown, Record<string, unknown>>();
  #finished = false;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#head = { id: "", created: seconds(context.nowMs), model: context.model };
  }

  get finished(): boolean {
    return this.#finished;
  }

  push(event: unknown): ChatChunk[] {
    if (!isRecord(event)) throw new UntranslatableAnswer("an event that is not an object");
    switch (event.type) {
      case "message_start":
        this.#head.id = String(at(event.message, "id") ?? "");
        this.#head.model = String(at(event.message, "model") ?? this.#context.model);
        return this.#chunk({ role: "assistant", content: "" });
      case "content_block_start":
        return this.#startBlock(event.index, event.content_block);
      case "content_block_delta":
        return this.#deltaBlock(event.index, event.delta);
      case "content_block_stop":
        return this.#stopBlock(event.index);
      case "message_delta": {
        const stop = at(event.delta, "stop_reason");
        return stop == null ? [] : [chatChunk(this.#head, {}, finishReason(stop))];
      }
      case "message_stop":
        this.#finished = true;
        return [];
      case "error": {
        const message = String(at(event.error, "message") ?? "The provider reported an error.");
        throw new ProviderStreamError({ message, type: String(at(event.error, "type") ?? "api_error"), code: null });
      }
      default:
        return [];
    }
  }

  #startBlock(block: unknown, content: unknown): ChatChunk[] {
    const type = at(content, "type");
    if (type === "tool_use") {
      const index = this.#callIndexes.size;
      this.#callIndexes.set(block, index);
      this.#silent.add(block);
      const call = { name: String(at(content, "name")), arguments: "" };
      return this.#chunk({ tool_calls: [{ index, id: String(at(content, "id")), type: "function", function: call }] });
    }
    if (isRecord(content) && (type === "thinking" || type === "redacted_thinking")) {
      this.#thinking.set(block, { ...content });
    }
    const text = at(content, "text");
    return type === "text" && typeof text === "string" && text !== "" ? this.#chunk({ content: text }) : [];
  }

  #deltaBlock(block: unknown, delta: unknown): ChatChunk[] {
    const text = (name: string): string => String(at(delta, name) ?? "");
    const thought = this.#thinking.get(block);
    switch (at(delta, "type")) {
      case "text_delta":
        return this.#chunk({ content: text("text") });
      case "input_json_delta": {
        const index = this.#callIndexes.get(block);
        const part = text("partial_json");
        if (index === undefined || part === "") return [];
        this.#silent.delete(block);
        return this.#chunk({ tool_calls: [{ index, function: { arguments: part } }] });
      }
      case "thinking_delta":
        if (thought) thought.thinking = String(thought.thinking ?? "") + text("thinking");
        return this.#chunk({ reasoning_content: text("thinking") });
      case "signature_delta":
        if (thought) thought.signature = String(thought.signature ?? "") + text("signature");
        return [];
      default:
        return [];
    }
  }

  #stopBlock(block: unknown): ChatChunk[] {
    const index = this.#callIndexes.get(block);
    if (index !== undefined && this.#silent.delete(block)) {
      return this.#chunk({ tool_calls: [{ index, function: { arguments: "{}" } }] });
    }
    // A signed thought is complete here; it goes out whole, as it must come back whole.
    const thought = this.#thinking.get(block);
    this.#thinking.delete(block);
    return thought ? this.#chunk({ extra_content: { anthropic: { thinking_blocks: [thought] } } }) : [];
  }

  #chunk(delta: ChatDelta): ChatChunk[] {
    return [chatChunk(this.#head, delta)];
  }
}
