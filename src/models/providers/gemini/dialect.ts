import { at, isRecord, itemsOf } from "../../../lib/untrusted-json.ts";
import { type Dialect, type StreamReading, textBytes } from "../dialect.ts";
import { type TokenUsage, tokenCount } from "../token-usage.ts";

/** Thinking is counted beside the candidates, and both are paid as output. */
function readUsage(value: unknown): TokenUsage | null {
  if (!isRecord(value)) return null;
  const reasoningTokens = tokenCount(value.thoughtsTokenCount);
  return {
    inputTokens: tokenCount(value.promptTokenCount) + tokenCount(value.toolUsePromptTokenCount),
    outputTokens: tokenCount(value.candidatesTokenCount) + reasoningTokens,
    cachedInputTokens: tokenCount(value.cachedContentTokenCount),
    cacheWriteTokens: 0,
    cacheWriteHourTokens: 0,
    reasoningTokens,
  };
}

/** Every event carries the counts so far. */
function observe(event: unknown, reading: StreamReading): void {
  for (const candidate of itemsOf(at(event, "candidates"))) {
    for (const part of itemsOf(at(at(candidate, "content"), "parts"))) {
      const args = at(at(part, "functionCall"), "args");
      reading.outputBytes += textBytes(at(part, "text"), args === undefined ? undefined : JSON.stringify(args));
    }
    reading.covers = false;
  }
  const usage = at(event, "usageMetadata");
  if (!isRecord(usage)) return;
  reading.usage = readUsage(usage);
  // Refused answers, and those with thinking only, have no candidates to count.
  reading.covers = usage.candidatesTokenCount !== undefined || isEnd(event);
}

const isEnd = (event: unknown): boolean =>
  at(at(event, "promptFeedback"), "blockReason") != null ||
  itemsOf(at(event, "candidates")).some((candidate) => at(candidate, "finishReason") != null);

export const geminiGenerate: Dialect = {
  name: "gemini-generate",
  usageMember: "usageMetadata",
  readUsage,
  observe,
  isEnd,
  failure: ({ message, status }) => ({ data: { error: { code: status, message, status: "UNAVAILABLE" } } }),
  outputLimits: [
    ["generationConfig", "maxOutputTokens"],
    ["generation_config", "max_output_tokens"],
  ],
  generates: true,
  model: "path",
};

/** Embeddings: what they count is told by some models only. */
export const geminiEmbed: Dialect = { ...geminiGenerate, name: "gemini-embed", outputLimits: [], generates: false };
