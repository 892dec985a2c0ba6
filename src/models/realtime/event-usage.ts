/** What events of a realtime session tell about usage. */
import { at, isRecord } from "../../lib/untrusted-json.ts";
import { type TokenUsage, tokenCount } from "../providers/token-usage.ts";

/** Null when the event tells no counts: of a response that failed, or of a transcription that is paid by the minute. */
export function realtimeUsage(value: unknown): TokenUsage | null {
  if (!isRecord(value)) return null;
  const { input_token_details: input, output_token_details: output } = value;
  const inputTokens = tokenCount(value.input_tokens);
  const outputTokens = tokenCount(value.output_tokens);
  if (inputTokens + outputTokens === 0) return null;
  return {
    inputTokens,
    outputTokens,
    cachedInputTokens: tokenCount(at(input, "cached_tokens")),
    cacheWriteTokens: 0,
    cacheWriteHourTokens: 0,
    reasoningTokens: 0,
    audio: {
      inputTokens: tokenCount(at(input, "audio_tokens")),
      cachedInputTokens: tokenCount(at(at(input, "cached_tokens_details"), "audio_tokens")),
      outputTokens: tokenCount(at(output, "audio_tokens")),
    },
  };
}

const TEXT_CHARACTERS_PER_TOKEN = 4;
/** A token is 50 ms of generated speech: 2400 bytes of PCM at 24 kHz, 3200 characters in base64. */
const AUDIO_CHARACTERS_PER_TOKEN = 3200;

/** Tokens that one event of a response generated, roughly. */
export function generatedTokens(type: string, event: unknown): number {
  const delta = at(event, "delta");
  if (typeof delta !== "string") return 0;
  return delta.length / (type.endsWith("audio.delta") ? AUDIO_CHARACTERS_PER_TOKEN : TEXT_CHARACTERS_PER_TOKEN);
}
