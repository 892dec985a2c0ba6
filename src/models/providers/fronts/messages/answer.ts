/** A chat answer as one of the Messages API. */
import type { TokenUsage } from "../../token-usage.ts";
import { NO_USAGE } from "../../token-usage.ts";
import { idOf, readCompletion } from "../chat-reading.ts";
import type { FrontContext, Json } from "../front.ts";
import { isEmpty, type ProviderState, sealState } from "../provider-state.ts";

export function fromChat(answer: unknown, { model }: FrontContext): Json {
  const read = readCompletion(answer);
  const content: Json[] = [];
  if (read.reasoning !== "" || !isEmpty(read.state)) content.push(thinkingBlock(read.reasoning, read.state));
  const text = read.text + read.refusal;
  if (text !== "") content.push({ type: "text", text, citations: null });
  for (const { id, name, args } of read.calls) content.push({ type: "tool_use", id, name, input: inputOf(args) });
  return messageOf(
    read.id,
    read.model || model,
    content,
    stopOf(read.finish, read.refusal !== ""),
    read.usage ?? NO_USAGE,
  );
}

export const thinkingBlock = (thinking: string, state: ProviderState): Json => ({
  type: "thinking",
  thinking,
  signature: isEmpty(state) ? "" : sealState(state),
});

/** Arguments that are not a JSON object are wrapped in one, so that the caller sees them. */
function inputOf(args: string): unknown {
  try {
    const input: unknown = JSON.parse(args || "{}");
    return typeof input === "object" && input !== null ? input : { value: input };
  } catch {
    return { value: args };
  }
}

const STOPS: Record<string, string> = { length: "max_tokens", tool_calls: "tool_use", content_filter: "refusal" };

export const stopOf = (finish: string | null, isRefused: boolean): string =>
  isRefused ? "refusal" : (STOPS[finish ?? ""] ?? "end_turn");

export const messageOf = (
  id: string,
  model: string,
  content: Json[],
  stop: string | null,
  usage: TokenUsage,
): Json => ({
  id: idOf("msg_", id),
  type: "message",
  role: "assistant",
  model,
  content,
  stop_reason: stop,
  stop_sequence: null,
  usage: usageOf(usage),
});

/** Cached input is counted beside the rest there. */
export const usageOf = ({ inputTokens, outputTokens, cachedInputTokens }: TokenUsage): Json => ({
  input_tokens: Math.max(0, inputTokens - cachedInputTokens),
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: cachedInputTokens,
  output_tokens: outputTokens,
});
