import { at, isRecord, itemsOf } from "../../../lib/untrusted-json.ts";
import {
  type AnswerContext,
  type ChatStreamTranslation,
  ProviderStreamError,
  UntranslatableAnswer,
} from "../chat-translation.ts";
import { type AnswerHead, type ChatChunk, type ChatDelta, chatChunk } from "../openai/chat-answer.ts";
import { blockReason, callOf, finishReason, headOf, refusalText } from "./chat-answer.ts";

/** Every event is a whole answer of its own; calls come complete in one part. */
export class GenerateStream implements ChatStreamTranslation {
  readonly #context: AnswerContext;
  #head: AnswerHead | null = null;
  /** Calls so far of each candidate that has begun. */
  readonly #calls = new Map<number, number>();
  #finished = false;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  get finished(): boolean {
    return this.#finished;
  }

  push(event: unknown): ChatChunk[] {
    if (!isRecord(event)) throw new UntranslatableAnswer("an event that is not an object");
    if (isRecord(event.error)) {
      const message = String(event.error.message ?? "The provider reported an error.");
      throw new ProviderStreamError({ message, type: String(event.error.status ?? "api_error"), code: null });
    }
    this.#head ??= headOf(event, this.#context);
    const head = this.#head;
    const blocked = blockReason(event);
    if (blocked) {
      this.#finished = true;
      const refusal = { role: "assistant", refusal: refusalText(blocked) } as const;
      return [chatChunk(head, refusal), chatChunk(head, {}, "content_filter")];
    }
    return itemsOf(event.candidates).flatMap((candidate) => this.#candidate(candidate, head));
  }

  #candidate(candidate: unknown, head: AnswerHead): ChatChunk[] {
    const index = Number(at(candidate, "index") ?? 0);
    const chunks: ChatChunk[] = [];
    if (!this.#calls.has(index)) {
      this.#calls.set(index, 0);
      chunks.push(chatChunk(head, { role: "assistant", content: "" }, null, index));
    }
    for (const part of itemsOf(at(at(candidate, "content"), "parts"))) {
      const delta = this.#delta(part, index);
      if (delta) chunks.push(chatChunk(head, delta, null, index));
    }
    const reason = at(candidate, "finishReason");
    if (reason != null) {
      this.#finished = true;
      chunks.push(chatChunk(head, {}, finishReason(reason, (this.#calls.get(index) ?? 0) > 0), index));
    }
    return chunks;
  }

  #delta(part: unknown, index: number): ChatDelta | null {
    const call = callOf(part);
    if (call) {
      const number = this.#calls.get(index) ?? 0;
      this.#calls.set(index, number + 1);
      return { tool_calls: [{ index: number, ...call }] };
    }
    const text = at(part, "text");
    if (typeof text !== "string" || text === "") return null;
    return at(part, "thought") === true ? { reasoning_content: text } : { content: text };
  }
}
