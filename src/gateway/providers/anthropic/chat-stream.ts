import {
  type AnswerContext,
  type ChatStreamTranslation,
  ProviderStreamError,
  UntranslatableAnswer,
} from "../chat-translation.ts";
import { type AnswerHead, type ChatChunk, type ChatDelta, chatChunk, seconds } from "../openai/chat-answer.ts";
import { at, isRecord } from "../token-usage.ts";
import { finishReason } from "./chat-answer.ts";

/** Content blocks are numbered together there; here tool calls have numbers of their own. */
export function messageStream(context: AnswerContext): ChatStreamTranslation {
  const head: AnswerHead = { id: "", created: seconds(context.nowMs), model: context.model };
  const callIndexes = new Map<unknown, number>();
  const thinking = new Map<unknown, Record<string, unknown>>();
  /** Calls whose arguments have not begun: of a tool without parameters they never do. */
  const silent = new Set<unknown>();
  let finished = false;

  const chunk = (delta: ChatDelta): ChatChunk[] => [chatChunk(head, delta)];

  function startBlock(event: Record<string, unknown>): ChatChunk[] {
    const block = event.content_block;
    const type = at(block, "type");
    if (type === "tool_use") {
      const index = callIndexes.size;
      callIndexes.set(event.index, index);
      silent.add(event.index);
      const call = { name: String(at(block, "name")), arguments: "" };
      return chunk({ tool_calls: [{ index, id: String(at(block, "id")), type: "function", function: call }] });
    }
    if (isRecord(block) && (type === "thinking" || type === "redacted_thinking"))
      thinking.set(event.index, { ...block });
    const text = at(block, "text");
    return type === "text" && typeof text === "string" && text !== "" ? chunk({ content: text }) : [];
  }

  function deltaBlock(event: Record<string, unknown>): ChatChunk[] {
    const delta = event.delta;
    switch (at(delta, "type")) {
      case "text_delta":
        return chunk({ content: String(at(delta, "text") ?? "") });
      case "input_json_delta": {
        const index = callIndexes.get(event.index);
        const text = String(at(delta, "partial_json") ?? "");
        if (text !== "") silent.delete(event.index);
        return index === undefined || text === ""
          ? []
          : chunk({ tool_calls: [{ index, function: { arguments: text } }] });
      }
      case "thinking_delta": {
        const text = String(at(delta, "thinking") ?? "");
        const block = thinking.get(event.index);
        if (block) block.thinking = String(block.thinking ?? "") + text;
        return chunk({ reasoning_content: text });
      }
      case "signature_delta": {
        const block = thinking.get(event.index);
        if (block) block.signature = String(block.signature ?? "") + String(at(delta, "signature") ?? "");
        return [];
      }
      default:
        return [];
    }
  }

  function stopBlock(event: Record<string, unknown>): ChatChunk[] {
    const index = callIndexes.get(event.index);
    if (index !== undefined && silent.delete(event.index)) {
      return chunk({ tool_calls: [{ index, function: { arguments: "{}" } }] });
    }
    // A signed thought is complete here; it goes out whole, as it must come back whole.
    const block = thinking.get(event.index);
    thinking.delete(event.index);
    return block ? chunk({ extra_content: { anthropic: { thinking_blocks: [block] } } }) : [];
  }

  function push(event: unknown): ChatChunk[] {
    if (!isRecord(event)) throw new UntranslatableAnswer("an event that is not an object");
    switch (event.type) {
      case "message_start":
        head.id = String(at(event.message, "id") ?? "");
        head.model = String(at(event.message, "model") ?? context.model);
        return chunk({ role: "assistant", content: "" });
      case "content_block_start":
        return startBlock(event);
      case "content_block_delta":
        return deltaBlock(event);
      case "content_block_stop":
        return stopBlock(event);
      case "message_delta": {
        const stop = at(event.delta, "stop_reason");
        return stop == null ? [] : [chatChunk(head, {}, finishReason(stop))];
      }
      case "message_stop":
        finished = true;
        return [];
      case "error": {
        const message = String(at(event.error, "message") ?? "The provider reported an error.");
        throw new ProviderStreamError({ message, type: String(at(event.error, "type") ?? "api_error"), code: null });
      }
      default:
        return [];
    }
  }

  return {
    push,
    get finished() {
      return finished;
    },
  };
}
