/**
 * OpenAI chat spoken to a provider of another tongue. The request is turned into one of the provider's, the answer,
 * each event of a stream and the errors are turned back. Nothing is re-assembled: one event in, its chunks out.
 */
import type { ChatChunk, ChatCompletion } from "./openai/chat-answer.ts";
import type { ChatRequest } from "./openai/chat-request.ts";

export interface ChatTranslation {
  /** The provider's path, from the root of its API; {model} is the provider's model name. */
  path: string;
  streamPath: string;
  toProvider(request: ChatRequest, model: string): Record<string, unknown>;
  /** Throws UntranslatableAnswer when the answer is not of the provider's shape. */
  fromProvider(answer: unknown, context: AnswerContext): ChatCompletion;
  stream(context: AnswerContext): ChatStreamTranslation;
  error(body: unknown): ChatError | null;
}

export interface AnswerContext {
  model: string;
  nowMs: number;
}

export interface ChatStreamTranslation {
  /** Throws UntranslatableAnswer on a malformed event, ProviderStreamError on one that reports a failure. */
  push(event: unknown): ChatChunk[];
  /** True once the provider has said that its answer is complete. */
  readonly finished: boolean;
}

export interface ChatError {
  message: string;
  type: string;
  code: string | null;
}

export class UntranslatableAnswer extends Error {
  constructor(what: string) {
    super(`The provider's answer is not of the expected shape: ${what}.`);
    this.name = "UntranslatableAnswer";
  }
}

export class ProviderStreamError extends Error {
  readonly error: ChatError;

  constructor(error: ChatError) {
    super(error.message);
    this.name = "ProviderStreamError";
    this.error = error;
  }
}
