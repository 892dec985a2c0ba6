import { at, isRecord } from "../../../lib/untrusted-json.ts";
import { type Dialect, type StreamReading, textBytes } from "../dialect.ts";
import { NO_USAGE, type TokenUsage, tokenCount } from "../token-usage.ts";

/** Cached and written input are counted beside `input_tokens` here, so the whole input is their sum. */
function readUsage(value: unknown): TokenUsage | null {
  return isRecord(value) ? merge(value, NO_USAGE) : null;
}

/** Counts in a later event are cumulative and replace; those it leaves out stay as they were. */
function merge(value: Record<string, unknown>, before: TokenUsage): TokenUsage {
  const cached = counted(value.cache_read_input_tokens) ?? before.cachedInputTokens;
  const written = counted(value.cache_creation_input_tokens) ?? before.cacheWriteTokens;
  const plain = counted(value.input_tokens) ?? before.inputTokens - before.cachedInputTokens - before.cacheWriteTokens;
  return {
    inputTokens: plain + cached + written,
    outputTokens: counted(value.output_tokens) ?? before.outputTokens,
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    cacheWriteHourTokens: counted(at(value.cache_creation, "ephemeral_1h_input_tokens")) ?? before.cacheWriteHourTokens,
    reasoningTokens: counted(at(value.output_tokens_details, "thinking_tokens")) ?? before.reasoningTokens,
  };
}

const counted = (value: unknown): number | undefined => (typeof value === "number" ? tokenCount(value) : undefined);

function observe(event: unknown, reading: StreamReading): void {
  const type = at(event, "type");
  if (type === "message_start") {
    reading.usage = readUsage(at(at(event, "message"), "usage"));
  } else if (type === "content_block_delta") {
    const delta = at(event, "delta");
    reading.outputBytes += textBytes(at(delta, "text"), at(delta, "partial_json"), at(delta, "thinking"));
    reading.covers = false;
  } else if (type === "message_delta") {
    const usage = at(event, "usage");
    if (!isRecord(usage)) return;
    reading.usage = merge(usage, reading.usage ?? NO_USAGE);
    reading.covers = true;
  }
}

export const anthropicMessages: Dialect = {
  name: "anthropic-messages",
  usageMember: "usage",
  readUsage,
  observe,
  isEnd: (event) => at(event, "type") === "message_stop",
  failure: ({ code, message }) => ({
    event: "error",
    data: { type: "error", error: { type: "api_error", message, code } },
  }),
  outputLimits: [["max_tokens"]],
  generates: true,
  model: "body",
};

/**
 * Messages that the provider answers later. The answers tell neither who asked nor when, so a batch is counted when it
 * is made, as the most that it may use.
 */
export const anthropicBatches: Dialect = {
  ...anthropicMessages,
  name: "anthropic-batches",
  later: true,
  model: "requests",
};
