/** A call that did not succeed. `status` is 0 when there was no answer at all. */
export interface ApiErrorFields {
  status: number;
  /** Machine word: what the server said in `error`, or one of ours for failures on the way. */
  code: string;
  message: string;
  requestId?: string | null;
  body?: unknown;
  cause?: unknown;
}

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  /** Find the request in the server's log with this. */
  readonly requestId: string | null;
  /** The whole answer, for endpoints whose errors say more. */
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

/** Management says `{code: 404, error: "not_found", message}`, sandboxes `{code: "INVALID_IMAGE", message}`. */
export function errorFromAnswer(status: number, headers: Headers, body: unknown): ApiError {
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
