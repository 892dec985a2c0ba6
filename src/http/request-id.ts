/** Every request has one id: in the workload's request, in the answer and in the log. */
import { randomBytes } from "node:crypto";
import type { Downstream } from "./downstream.ts";

/** A caller's own id is kept when it is harmless, so that it can be followed through. */
export function requestIdOf(down: Pick<Downstream, "header">): string {
  const given = down.header("x-request-id");
  return given !== undefined && /^[\w.:/+=-]{1,128}$/.test(given) ? given : nextRequestId();
}

// Unique by the process and counted within it: a random number for each request would cost more than its routing.
const processId = randomBytes(9).toString("base64url");
let requestCount = 0;

export function nextRequestId(): string {
  requestCount += 1;
  return `${processId}-${requestCount.toString(36)}`;
}
