/** Answers of the proxy itself. */
import { type EgressRefusal, refusal } from "../../lib/network/egress/egress-refusal.ts";
import { STATUS_CODES } from "../../lib/network/node-http.ts";

export { type EgressRefusal, isRefusal, refusal, refusedBy } from "../../lib/network/egress/egress-refusal.ts";

export const MALFORMED = refusal(
  400,
  "malformed_request",
  "The proxy takes CONNECT host:port and requests for http:// addresses.",
);

export const HEAD_TOO_SLOW = refusal(408, "head_too_slow", "The head of the request took too long.");

export const MALFORMED_SECRET = refusal(502, "secret_malformed", "A secret of this route cannot be sent in a header.");
const BROKEN = refusal(502, "connection_broken", "The connection broke.");

/** Carries a refusal through an API that knows errors only. */
export class RefusalError extends Error {
  readonly refusal: EgressRefusal;

  constructor(refused: EgressRefusal) {
    super(refused.message);
    this.refusal = refused;
  }
}

export const refusalOf = (error: Error): EgressRefusal => (error instanceof RefusalError ? error.refusal : BROKEN);

export function rawAnswer({ status, code, message }: EgressRefusal): string {
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nProxy-Error: ${code}\r\nContent-Type: text/plain\r\n`;
  return `${head}Content-Length: ${Buffer.byteLength(message) + 1}\r\nConnection: close\r\n\r\n${message}\n`;
}
