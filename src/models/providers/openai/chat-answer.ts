/** The chat answer as callers read it: what translations produce and the development provider writes. */
import type { TokenUsage } from "../token-usage.ts";

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

export interface AnswerToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
  extra_content?: Record<string, unknown>;
}

export interface AnswerMessage {
  role: "assistant";
  content: string | null;
  refusal: string | null;
  reasoning_content?: string;
  tool_calls?: AnswerToolCall[];
  extra_content?: Record<string, unknown>;
}

export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
  completion_tokens_details: { reasoning_tokens: number };
}

export interface ChatCompletion {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  choices: { index: number; message: AnswerMessage; logprobs: null; finish_reason: FinishReason }[];
  usage: ChatUsage;
}

export interface ToolCallDelta {
  index: number;
  id?: string;
  type?: "function";
  function?: { name?: string; arguments?: string };
  extra_content?: Record<string, unknown>;
}

export interface ChatDelta {
  role?: "assistant";
  content?: string;
  refusal?: string;
  reasoning_content?: string;
  tool_calls?: ToolCallDelta[];
  extra_content?: Record<string, unknown>;
}

export interface ChatChunk {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  choices: { index: number; delta: ChatDelta; logprobs: null; finish_reason: FinishReason | null }[];
  usage?: ChatUsage | null;
}

export interface AnswerHead {
  id: string;
  created: number;
  model: string;
}

export function chatCompletion(
  head: AnswerHead,
  choices: { message: AnswerMessage; finish: FinishReason }[],
  usage: TokenUsage,
): ChatCompletion {
  return {
    id: head.id,
    object: "chat.completion",
    created: head.created,
    model: head.model,
    choices: choices.map(({ message, finish }, index) => ({ index, message, logprobs: null, finish_reason: finish })),
    usage: chatUsage(usage),
  };
}

export function chatChunk(
  head: AnswerHead,
  delta: ChatDelta,
  finish: FinishReason | null = null,
  index = 0,
): ChatChunk {
  return {
    id: head.id,
    object: "chat.completion.chunk",
    created: head.created,
    model: head.model,
    choices: [{ index, delta, logprobs: null, finish_reason: finish }],
  };
}

/** The chunk a caller gets who asked for usage in a stream: no choices, only the counts. */
export const usageChunk = (head: AnswerHead, usage: TokenUsage): ChatChunk => ({
  id: head.id,
  object: "chat.completion.chunk",
  created: head.created,
  model: head.model,
  choices: [],
  usage: chatUsage(usage),
});

export const chatUsage = (usage: TokenUsage): ChatUsage => ({
  prompt_tokens: usage.inputTokens,
  completion_tokens: usage.outputTokens,
  total_tokens: usage.inputTokens + usage.outputTokens,
  prompt_tokens_details: { cached_tokens: usage.cachedInputTokens },
  completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
});

export const seconds = (nowMs: number): number => Math.floor(nowMs / 1000);
