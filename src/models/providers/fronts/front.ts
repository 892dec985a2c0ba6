/**
 * A front lets callers of one API use every provider: the request becomes an OpenAI chat request, which each provider
 * takes or has a translation for, and the chat answer becomes an answer of the caller's API. Budgets, counts, retries
 * and fallbacks see the chat request only, and so are the same whatever the caller speaks.
 */
import { GatewayError } from "../../../contract/gateway-errors.ts";
import type { StreamFailure } from "../dialect.ts";

export type Json = Record<string, unknown>;

export interface Front {
  /** Name of the API in messages about members that cannot be translated. */
  title: string;
  toChat(request: Json): Json;
  /** Throws UntranslatableAnswer when the answer is no chat completion. */
  fromChat(answer: unknown, context: FrontContext): unknown;
  stream(context: FrontContext): FrontStream;
  error(status: number, error: FrontError): unknown;
}

export interface FrontContext {
  /** The caller's request; parts of it are repeated in the answer. */
  request: Json;
  model: string;
  nowMs: number;
}

export interface FrontError {
  message: string;
  type: string;
  code: string | null;
}

/** One server-sent event. */
export interface FrontEvent {
  event: string;
  data: unknown;
}

export interface FrontStream {
  /** One chunk of a chat stream. */
  push(chunk: unknown): FrontEvent[];
  /** The chat stream is complete. */
  end(): FrontEvent[];
  fail(failure: StreamFailure): FrontEvent[];
}

export const unsupported = (front: string, what: string): GatewayError =>
  new GatewayError(
    "BAD_REQUEST",
    `${what} of the ${front} API cannot be translated for this model's provider. Leave it out, or use a provider that has this API itself.`,
  );

/** Members that the caller set, under the names that chat has for them. */
export function renamed(request: Json, names: Readonly<Record<string, string>>): Json {
  const out: Json = {};
  for (const [from, to] of Object.entries(names)) if (request[from] != null) out[to] = request[from];
  return out;
}
