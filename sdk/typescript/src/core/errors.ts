/** The one error class of the SDK, made of every error shape that a server has. */
import { NEXT_STEPS } from "../generated/next-steps.ts";

export interface BerthErrorFields {
  code: string;
  message: string;
  status?: number;
  nextStep?: string | undefined;
  retryable?: boolean;
  requestId?: string | null;
  body?: unknown;
  cause?: unknown;
}

export class BerthError extends Error {
  /** A word for programs: `not_found`, `SANDBOX_ALREADY_EXISTS`, `unreachable`. */
  readonly code: string;
  /** The HTTP status; 0 when no answer arrived. */
  readonly status: number;
  /** What to do about it. */
  readonly nextStep: string;
  /** Whether the very same request may succeed later. */
  readonly retryable: boolean;
  /** Identifies the request in the server's log. */
  readonly requestId: string | null;
  /** The whole answer. */
  readonly body: unknown;

  constructor(fields: BerthErrorFields) {
    super(fields.message, fields.cause === undefined ? undefined : { cause: fields.cause });
    this.name = "BerthError";
    this.code = fields.code;
    this.status = fields.status ?? 0;
    this.nextStep = fields.nextStep ?? NEXT_STEPS[fields.code] ?? NEXT_STEPS[String(this.status)] ?? "";
    this.retryable = fields.retryable ?? false;
    this.requestId = fields.requestId ?? null;
    this.body = fields.body ?? null;
  }
}

/** Statuses after which the same request may succeed. */
const RETRYABLE = new Set([429, 502, 503, 504]);
/** Codes for answers that have a sentence and no code, as those from inside a sandbox. */
const CODE_OF_STATUS: Readonly<Record<number, string>> = {
  400: "invalid_request",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  413: "too_large",
  422: "refused",
  429: "rate_limited",
};

type Json = Record<string, unknown>;

/**
 * Reads all error shapes: management `{code: 404, error: "not_found", message}`, sandbox records `{code:
 * "INVALID_IMAGE", message}`, the gateway `{error: {code, message, action, retryable}}`, inside a sandbox `{error:
 * "sentence"}`, OAuth `{error, error_description}`.
 */
export function errorOf(status: number, headers: Headers, text: string): BerthError {
  const body = parsed(text);
  const answer = isJson(body) ? body : {};
  const gateway = isJson(answer.error) ? answer.error : null;
  const said = gateway ?? answer;
  const [code, sentence] = codeAndSentence(status, answer, gateway);
  return new BerthError({
    status,
    code,
    message: sentence ?? `The server answered ${status} (${code}).`,
    nextStep: word(said.action),
    retryable: typeof said.retryable === "boolean" ? said.retryable : RETRYABLE.has(status),
    requestId: headers.get("x-request-id"),
    body: body ?? text,
  });
}

function codeAndSentence(status: number, answer: Json, gateway: Json | null): [string, string | undefined] {
  const fallback = CODE_OF_STATUS[status] ?? "failed";
  if (gateway) return [word(gateway.code) ?? fallback, word(gateway.message)];
  const error = word(answer.error);
  const sentence = word(answer.message) ?? word(answer.error_description);
  // Inside a sandbox `error` is the sentence.
  if (error?.includes(" ") && sentence === undefined) return [fallback, error];
  return [error ?? word(answer.code) ?? fallback, sentence];
}

const word = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

export const isJson = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // a page of something else than Berth: the status tells
  }
}
