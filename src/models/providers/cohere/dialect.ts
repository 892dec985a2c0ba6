import { at, isRecord } from "../../../lib/untrusted-json.ts";
import { type Dialect, type StreamReading, textBytes } from "../dialect.ts";
import { openaiOther } from "../openai/dialects.ts";
import { NO_USAGE, type TokenUsage, tokenCount } from "../token-usage.ts";

/** Billed units are what is paid for; the raw token counts stand in when they are missing. */
function readUsage(value: unknown): TokenUsage | null {
  const units = at(value, "billed_units") ?? at(value, "tokens");
  if (!isRecord(units)) return null;
  return {
    ...NO_USAGE,
    inputTokens: tokenCount(units.input_tokens),
    outputTokens: tokenCount(units.output_tokens),
    cachedInputTokens: tokenCount(at(value, "cached_tokens")),
  };
}

function observe(event: unknown, reading: StreamReading): void {
  const delta = at(event, "delta");
  const message = at(delta, "message");
  const call = at(at(message, "tool_calls"), "function");
  const bytes = textBytes(at(at(message, "content"), "text"), at(message, "tool_plan"), at(call, "arguments"));
  reading.outputBytes += bytes;
  if (bytes > 0) reading.covers = false;
  const usage = readUsage(at(delta, "usage"));
  if (!usage) return;
  reading.usage = usage;
  reading.covers = true;
}

export const cohereChat: Dialect = {
  name: "cohere-chat",
  usageMember: "usage",
  readUsage,
  observe,
  isEnd: (event) => at(event, "type") === "message-end",
  failure: ({ message }) => ({ event: "error", data: { type: "error", message } }),
  outputLimits: [["max_tokens"]],
  generates: true,
  model: "body",
};

/** Embedding and reranking put the counts into `meta`. */
export const cohereOther: Dialect = {
  ...openaiOther,
  name: "cohere-other",
  usageMember: "meta",
  readUsage,
  model: "body",
};

/** Its older chat does too, and streams lines of JSON. */
export const cohereOlderChat: Dialect = { ...cohereOther, outputLimits: [["max_tokens"]], generates: true };
