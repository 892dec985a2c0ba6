/** The id of a request: sent to the workload, in the answer, and written to the log. */
import { randomBytes } from "node:crypto";
import type { Downstream } from "./downstream.ts";

/** Keeps a caller's own id when it is harmless, so that the caller can trace the request. */
export function requestIdOf(down: Pick<Downstream, "header">): string {
  const given = down.header("x-request-id");
  return given !== undefined && /^[\w.:/+=-]{1,128}$/.test(given) ? given : nextRequestId();
}

// A random process id and a counter: a random number per request would cost more than its routing.
const processId = randomBytes(9).toString("base64url");
let requestCount = 0;

export function nextRequestId(): string {
  requestCount += 1;
  return `${processId}-${requestCount.toString(36)}`;
}
