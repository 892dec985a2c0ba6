/** A call that failed. `status` is 0 when no response arrived. */
export interface ApiErrorFields {
  status: number;
  /** Machine-readable code: the server's `error`, or one of the client's own for connection failures. */
  code: string;
  message: string;
  requestId?: string | null;
  body?: unknown;
  cause?: unknown;
}

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  /** Identifies the request in the server's log. */
  readonly requestId: string | null;
  /** The whole response body, for endpoints whose errors carry more fields. */
  readonly body: unknown;

  constructor({ status, code, message, requestId = null, body = null, cause }: ApiErrorFields) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.requestId = requestId;
    this.body = body;
  }
}

/**
 * Reads both error shapes: management `{code: 404, error: "not_found", message}`, sandboxes `{code: "INVALID_IMAGE",
 * message}`.
 */
export function errorFromAnswer(status: number, headers: Pick<Headers, "get">, body: unknown): ApiError {
  const { error, code, message } = (body ?? {}) as { error?: unknown; code?: unknown; message?: unknown };
  const word = [error, code].find((value): value is string => typeof value === "string");
  return new ApiError({
    status,
    code: word ?? "failed",
    message:
      typeof message === "string" && message !== ""
        ? message
        : `The server answered ${status}${word ? ` (${word})` : ""}.`,
    requestId: headers.get("x-request-id"),
    body,
  });
}
