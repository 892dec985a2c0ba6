/**
 * A dialect is the wire format of one family of endpoints: where an answer says what it used, and how an error is
 * told in the middle of a stream. The engine reads and reports through it and knows no provider.
 */
import type { TokenUsage } from "./token-usage.ts";

export type DialectName =
  | "openai-chat"
  | "openai-completions"
  | "openai-responses"
  | "openai-embeddings"
  | "openai-other"
  | "anthropic-messages"
  | "anthropic-batches"
  | "gemini-generate"
  | "gemini-embed"
  | "cohere-chat"
  | "cohere-other";

/** What has been read of a stream so far. */
export interface StreamReading {
  usage: TokenUsage | null;
  /** False while the reported output does not cover what was generated so far. */
  covers: boolean;
  /** Bytes of generated text seen, for the estimate when a stream ends before its count arrived. */
  outputBytes: number;
}

export interface StreamFailure {
  code: string;
  message: string;
  status: number;
}

export interface Dialect {
  name: DialectName;
  /** The member of a JSON answer that holds the counts. */
  usageMember: string;
  readUsage(value: unknown): TokenUsage | null;
  /** Takes what one parsed event of a stream says into the reading. */
  observe(event: unknown, reading: StreamReading): void;
  /** True for the event after which nothing of the answer follows. */
  isEnd(event: unknown): boolean;
  /** The JSON an event of this dialect carries when the stream fails, and the event's name if it has one. */
  failure(failure: StreamFailure): { event?: string; data: unknown };
  /** Paths to the request's limits on generated tokens. */
  outputLimits: readonly (readonly string[])[];
  /** True when a request uses no tokens, whatever its answer tells: no cap holds it back. */
  free?: true;
  /** The member of a request that is true when the work goes on after the answer, unseen. */
  laterMember?: string;
  /** True when the work of every request goes on after the answer, unseen. */
  later?: true;
  /** True when every request of this dialect generates text, so that a missing limit means an unknown one. */
  generates: boolean;
  /**
   * Where the model's name goes: always into the body, into the body if it is there already, into the path, or into the
   * `params` of each of the body's `requests`.
   */
  model: "body" | "body-if-present" | "path" | "requests";
}

/** Bytes of the strings among some values; other values count nothing. */
export function textBytes(...values: unknown[]): number {
  let bytes = 0;
  for (const value of values) if (typeof value === "string") bytes += Buffer.byteLength(value);
  return bytes;
}
