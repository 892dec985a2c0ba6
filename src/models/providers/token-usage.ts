/** Token usage of one request, as the provider reports it. */
export interface TokenUsage {
  /** All input, cached or not. */
  inputTokens: number;
  /** All output, reasoning included. */
  outputTokens: number;
  /** The part of the input read from a prompt cache. */
  cachedInputTokens: number;
  /** The part of the input written to a prompt cache. */
  cacheWriteTokens: number;
  /** The part of cacheWriteTokens kept for an hour, which some providers price apart. */
  cacheWriteHourTokens: number;
  /** The part of the output spent on reasoning. */
  reasoningTokens: number;
  /** The parts that are audio, where the provider tells them apart. */
  audio?: AudioTokens;
}

export interface AudioTokens {
  inputTokens: number;
  /** The part of inputTokens read from a prompt cache. */
  cachedInputTokens: number;
  outputTokens: number;
}

export const NO_USAGE: TokenUsage = Object.freeze({
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  cacheWriteHourTokens: 0,
  reasoningTokens: 0,
});

/** No request has more: who reports more is wrong, or wants the sums to overflow. */
export const TOKENS_MAX = 100_000_000;

/** A count from an untrusted answer: a whole number of at least zero, anything else is zero. */
export function tokenCount(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? Math.min(value, TOKENS_MAX) : 0;
}
