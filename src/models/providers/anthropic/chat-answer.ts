import { z } from "zod";
import { type AnswerContext, UntranslatableAnswer } from "../chat-translation.ts";
import {
  type AnswerMessage,
  type AnswerToolCall,
  type ChatCompletion,
  chatCompletion,
  type FinishReason,
  seconds,
} from "../openai/chat-answer.ts";
import { NO_USAGE } from "../token-usage.ts";
import { anthropicMessages } from "./dialect.ts";

const answer = z.looseObject({
  id: z.string(),
  model: z.string().optional(),
  content: z.array(z.looseObject({ type: z.string() })),
  stop_reason: z.string().nullish(),
});

export function fromMessage(body: unknown, context: AnswerContext): ChatCompletion {
  const parsed = answer.safeParse(body);
  if (!parsed.success) throw new UntranslatableAnswer(`a message, at ${parsed.error.issues[0]?.path.join(".")}`);
  const { id, model, content, stop_reason: stop } = parsed.data;
  const text: string[] = [];
  const thoughts: string[] = [];
  const signed: unknown[] = [];
  const calls: AnswerToolCall[] = [];
  for (const block of content) {
    if (block.type === "text") text.push(String(block.text ?? ""));
    else if (block.type === "tool_use") calls.push(toolCall(block));
    else if (block.type === "thinking" || block.type === "redacted_thinking") {
      if (typeof block.thinking === "string") thoughts.push(block.thinking);
      signed.push(block);
    }
  }
  const message: AnswerMessage = { role: "assistant", content: text.join("") || null, refusal: null };
  if (calls.length > 0) message.tool_calls = calls;
  else message.content ??= "";
  if (thoughts.length > 0) message.reasoning_content = thoughts.join("");
  if (signed.length > 0) message.extra_content = { anthropic: { thinking_blocks: signed } };
  const usage = anthropicMessages.readUsage((body as Record<string, unknown>).usage) ?? NO_USAGE;
  const head = { id, created: seconds(context.nowMs), model: model ?? context.model };
  return chatCompletion(head, [{ message, finish: finishReason(stop) }], usage);
}

const toolCall = (block: Record<string, unknown>): AnswerToolCall => ({
  id: String(block.id),
  type: "function",
  function: { name: String(block.name), arguments: JSON.stringify(block.input ?? {}) },
});

const FINISH: Record<string, FinishReason> = {
  end_turn: "stop",
  stop_sequence: "stop",
  pause_turn: "stop",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  tool_use: "tool_calls",
  refusal: "content_filter",
};

export const finishReason = (stop: unknown): FinishReason => FINISH[String(stop)] ?? "stop";
