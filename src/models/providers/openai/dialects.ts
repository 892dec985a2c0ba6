import { at, isRecord, itemsOf } from "../../../lib/untrusted-json.ts";
import { type Dialect, type StreamReading, textBytes } from "../dialect.ts";
import { type TokenUsage, tokenCount } from "../token-usage.ts";

/**
 * Counts in the words of this API and of the many that copied it: prompt/completion in the older endpoints,
 * input/output in the newer ones, and the cache hits of one provider that names them apart.
 */
function readUsage(value: unknown): TokenUsage | null {
  if (!isRecord(value)) return null;
  const inputTokens = tokenCount(value.prompt_tokens ?? value.input_tokens);
  const told = tokenCount(value.completion_tokens ?? value.output_tokens);
  const inputDetails = value.prompt_tokens_details ?? value.input_tokens_details;
  const outputDetails = value.completion_tokens_details ?? value.output_tokens_details;
  const total = tokenCount(value.total_tokens);
  if (inputTokens + told + total === 0) return null;
  return {
    // Some answers give only a total: of an embedding it is all input.
    inputTokens: inputTokens + told === 0 ? total : inputTokens,
    // Some count reasoning beside the answer: it is in the total only, and paid for as output.
    outputTokens: inputTokens > 0 ? Math.max(told, total - inputTokens) : told,
    cachedInputTokens: tokenCount(at(inputDetails, "cached_tokens") ?? value.prompt_cache_hit_tokens),
    cacheWriteTokens: tokenCount(at(inputDetails, "cache_write_tokens")),
    cacheWriteHourTokens: 0,
    reasoningTokens: tokenCount(at(outputDetails, "reasoning_tokens")),
  };
}

function take(usage: unknown, reading: StreamReading): void {
  const counts = readUsage(usage);
  if (!counts) return;
  reading.usage = counts;
  reading.covers = true;
}

function observeChat(event: unknown, reading: StreamReading): void {
  for (const choice of itemsOf(at(event, "choices"))) {
    const delta = at(choice, "delta");
    const bytes = textBytes(
      at(delta, "content"),
      at(delta, "reasoning_content"),
      at(delta, "reasoning"),
      at(choice, "text"),
    );
    let callBytes = 0;
    for (const call of itemsOf(at(delta, "tool_calls"))) callBytes += textBytes(at(at(call, "function"), "arguments"));
    if (bytes + callBytes === 0) continue;
    reading.outputBytes += bytes + callBytes;
    reading.covers = false;
  }
  // Groq reports usage in a member of its own when `usage` was not requested.
  take(at(event, "usage") ?? at(at(event, "x_groq"), "usage"), reading);
}

function observeResponses(event: unknown, reading: StreamReading): void {
  reading.outputBytes += textBytes(at(event, "delta"));
  take(at(at(event, "response"), "usage"), reading);
}

const RESPONSE_ENDS = new Set(["response.completed", "response.incomplete", "response.failed"]);

const failure: Dialect["failure"] = ({ code, message }) => ({
  data: { error: { message, type: "platform_error", param: null, code } },
});

export const openaiChat: Dialect = {
  name: "openai-chat",
  usageMember: "usage",
  readUsage,
  observe: observeChat,
  // The word [DONE] ends it, which is no event of its own.
  isEnd: () => false,
  failure,
  outputLimits: [["max_completion_tokens"], ["max_tokens"]],
  generates: true,
  model: "body",
};

/** The legacy text endpoint: the same frame around plain text. */
export const openaiCompletions: Dialect = { ...openaiChat, name: "openai-completions" };

export const openaiResponses: Dialect = {
  ...openaiChat,
  name: "openai-responses",
  observe: observeResponses,
  isEnd: (event) => RESPONSE_ENDS.has(String(at(event, "type"))),
  failure: ({ code, message }) => ({
    event: "error",
    data: { type: "error", code, message, param: null, sequence_number: 0 },
  }),
  outputLimits: [["max_output_tokens"]],
  laterMember: "background",
};

export const openaiEmbeddings: Dialect = {
  ...openaiChat,
  name: "openai-embeddings",
  outputLimits: [],
  generates: false,
};

/** Whatever else a provider offers: counts are read where they follow the custom. */
export const openaiOther: Dialect = {
  ...openaiChat,
  name: "openai-other",
  outputLimits: [],
  generates: false,
  model: "body-if-present",
};

/** Looking at what earlier calls left behind uses no tokens, although the counts of those calls are told again. */
export const uncounted: Dialect = { ...openaiOther, readUsage: () => null, observe: () => {}, free: true };
