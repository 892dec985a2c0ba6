/** Errors as `{ error }`, or as a closed connection once an answer has begun. */
import type { ServerResponse } from "node:http";
import { ApiError, errnoOf, toApiError } from "./api-error.ts";
import { sendJson } from "./send.ts";

export function fail(res: ServerResponse, error: unknown): void {
  const failure = error instanceof URIError ? new ApiError(400, "The path is not valid UTF-8.") : toApiError(error);
  // Once the headers are sent, only closing the connection tells the client of the failure.
  if (res.headersSent || res.destroyed) return void res.destroy();
  // Log unexpected errors, but not a client that disconnected.
  if (!(error instanceof ApiError) && failure.status === 500 && errnoOf(error) !== "ECONNRESET") console.error(error);
  sendJson(res, failure.status, { error: failure.message });
}
