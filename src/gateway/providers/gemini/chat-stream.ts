import {
  type AnswerContext,
  type ChatStreamTranslation,
  ProviderStreamError,
  UntranslatableAnswer,
} from "../chat-translation.ts";
import { itemsOf } from "../dialect.ts";
import { type AnswerHead, type ChatChunk, type ChatDelta, chatChunk } from "../openai/chat-answer.ts";
import { at, isRecord } from "../token-usage.ts";
import { blockReason, callOf, finishReason, headOf, refusalText } from "./chat-answer.ts";

/** Every event is a whole answer of its own; calls come complete in one part. */
export function generateStream(context: AnswerContext): ChatStreamTranslation {
  let head: AnswerHead | null = null;
  let finished = false;
  const calls = new Map<number, number>();

  function candidateChunks(candidate: unknown, start: AnswerHead): ChatChunk[] {
    const index = Number(at(candidate, "index") ?? 0);
    const chunks: ChatChunk[] = [];
    if (!calls.has(index)) {
      calls.set(index, 0);
      chunks.push(chatChunk(start, { role: "assistant", content: "" }, null, index));
    }
    for (const part of itemsOf(at(at(candidate, "content"), "parts"))) {
      const delta = deltaOf(part, index);
      if (delta) chunks.push(chatChunk(start, delta, null, index));
    }
    const reason = at(candidate, "finishReason");
    if (reason != null) {
      finished = true;
      chunks.push(chatChunk(start, {}, finishReason(reason, (calls.get(index) ?? 0) > 0), index));
    }
    return chunks;
  }

  function deltaOf(part: unknown, index: number): ChatDelta | null {
    const call = callOf(part);
    if (call) {
      const number = calls.get(index) ?? 0;
      calls.set(index, number + 1);
      return { tool_calls: [{ index: number, ...call }] };
    }
    const text = at(part, "text");
    if (typeof text !== "string" || text === "") return null;
    return at(part, "thought") === true ? { reasoning_content: text } : { content: text };
  }

  function push(event: unknown): ChatChunk[] {
    if (!isRecord(event)) throw new UntranslatableAnswer("an event that is not an object");
    if (isRecord(event.error)) {
      const message = String(event.error.message ?? "The provider reported an error.");
      throw new ProviderStreamError({ message, type: String(event.error.status ?? "api_error"), code: null });
    }
    head ??= headOf(event, context);
    const start = head;
    const blocked = blockReason(event);
    if (blocked) {
      finished = true;
      return [
        chatChunk(start, { role: "assistant", refusal: refusalText(blocked) }),
        chatChunk(start, {}, "content_filter"),
      ];
    }
    return itemsOf(event.candidates).flatMap((candidate) => candidateChunks(candidate, start));
  }

  return {
    push,
    get finished() {
      return finished;
    },
  };
}
