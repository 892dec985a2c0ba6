/** Error responses: one body shape, one status table, and no internal details. */
import { PlatformError } from "../contract/errors.ts";

export interface ErrorResponse {
  status: number;
  headers: Record<string, string>;
  body: Record<string, unknown>;
  /** Whether the error is logged with its details. */
  unexpected: boolean;
}

const RULES_BY_CODE: Record<string, [PlatformError["code"], string]> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ["payload_too_large", "The body is larger than this endpoint accepts."],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ["unsupported_media_type", "Send the body as application/json."],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ["bad_request", "Content-Length does not match the body."],
  FST_ERR_CTP_INVALID_JSON_BODY: ["bad_request", "The body is not valid JSON."],
  FST_ERR_CTP_EMPTY_JSON_BODY: ["bad_request", "The body is empty."],
  FST_ERR_MAX_PARAM_LENGTH: ["not_found", "No such resource: a name in the path is too long."],
  FST_ERR_BAD_URL: ["bad_request", "The path is not valid."],
  FST_ERR_ASYNC_CONSTRAINT: ["bad_request", "The request cannot be routed."],
};

export function errorResponse(error: unknown): ErrorResponse {
  const known = asPlatformError(error);
  if (!known) {
    const body = {
      code: 500,
      error: "internal",
      message: "Something went wrong on our side. The request id is in X-Request-Id; the server's log tells more.",
    };
    return { status: 500, headers: {}, body, unexpected: true };
  }
  const body = { code: known.status, error: known.code, message: known.message, ...known.body };
  return { status: known.status, headers: known.headers ?? {}, body, unexpected: known.status >= 500 };
}

function asPlatformError(error: unknown): PlatformError | null {
  if (error instanceof PlatformError) return error;
  const { code = "", statusCode, message } = error as { code?: string; statusCode?: number; message?: string };
  const rule = RULES_BY_CODE[code];
  if (rule) return new PlatformError(rule[0], rule[1], { cause: error });
  if (error instanceof SyntaxError && statusCode === 400)
    return new PlatformError("bad_request", `The body is not valid JSON: ${message}.`, { cause: error });
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return new PlatformError("bad_request", message ?? "The request is not valid.", { cause: error });
  return null;
}
