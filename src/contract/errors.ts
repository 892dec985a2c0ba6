/**
 * The one error class. A code names the kind of failure; the edge maps it to a status with the table below. `message`
 * is for the caller and says what to do next; `detail` is for the log and is never sent.
 */
export const STATUS_OF = {
  bad_request: 400,
  invalid_field: 400,
  unknown_member: 400,
  invalid_parameter: 400,
  invalid_cursor: 400,
  invalid_api_version: 400,
  workspace_required: 400,
  immutable_field: 400,
  unauthenticated: 401,
  usage_limit_exceeded: 402,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  already_exists: 409,
  idempotency_conflict: 409,
  gone: 410,
  precondition_failed: 412,
  payload_too_large: 413,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  unprocessable: 422,
  too_many_requests: 429,
  internal: 500,
  bad_gateway: 502,
  unavailable: 503,
  timeout: 504,
  insufficient_storage: 507,
} as const;

export type ErrorCode = keyof typeof STATUS_OF;

export interface ErrorOptions {
  cause?: unknown;
  /** For the log only. */
  detail?: Record<string, unknown>;
  /** Response headers that belong to the failure, such as Retry-After. */
  headers?: Record<string, string>;
  /** Extra members of the response body, for endpoints whose clients read a richer one. */
  body?: Record<string, unknown>;
}

export class PlatformError extends Error {
  readonly code: ErrorCode;
  readonly detail: Record<string, unknown> | undefined;
  readonly headers: Record<string, string> | undefined;
  readonly body: Record<string, unknown> | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.name = "PlatformError";
    this.code = code;
    this.detail = options.detail;
    this.headers = options.headers;
    this.body = options.body;
  }

  /** A copy of this error with more members in its body. */
  with(body: Record<string, unknown>): PlatformError {
    const { cause, detail = {}, headers = {} } = this;
    return new PlatformError(this.code, this.message, { cause, detail, headers, body: { ...this.body, ...body } });
  }

  get status(): number {
    return STATUS_OF[this.code];
  }
}

/** The node that has what the request needs does not answer. */
export class NodeUnavailable extends PlatformError {
  constructor(nodeName: string, cause?: unknown) {
    super(
      "unavailable",
      `The node '${nodeName}' that this request needs does not answer. The request works when the node is back.`,
      {
        cause,
        headers: { "retry-after": "5" },
      },
    );
  }
}

/** The platform's own disk is full; `reason` says how much is missing. */
export const diskFull = (reason: string, cause?: unknown): PlatformError =>
  new PlatformError("insufficient_storage", `${reason} Delete something, or tell whoever runs this server.`, { cause });

export const notFound = (what: string): PlatformError =>
  new PlatformError("not_found", `${what} does not exist, or is not visible with these credentials.`);

/**
 * A violated rule that the schema cannot express, in the same form as schema errors: the field's path, then the rule.
 */
export const invalidField = (path: string, rule: string): PlatformError =>
  new PlatformError("invalid_field", `${path}: ${rule}.`);
