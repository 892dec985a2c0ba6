/** Answers of the proxy itself. */
import { STATUS_CODES } from "../../lib/network/node-http.ts";

export interface EgressRefusal {
  status: number;
  /** For programs, in the header Proxy-Error. */
  code: string;
  message: string;
  /** The place of the rule that refuses; absent where no rule of a tenant does. */
  rule?: string;
}

export const refusal = (status: number, code: string, message: string): EgressRefusal => ({ status, code, message });

export const refusedBy = (host: string, rule: string): EgressRefusal => ({
  ...refusal(403, "firewall_blocked", `${host} is refused by ${rule}.`),
  rule,
});

export const MALFORMED = refusal(
  400,
  "malformed_request",
  "The proxy takes CONNECT host:port and requests for http:// addresses.",
);

export const HEAD_TOO_SLOW = refusal(408, "head_too_slow", "The head of the request took too long.");

export const isRefusal = (value: object): value is EgressRefusal => "code" in value && "status" in value;

/** Carries a refusal through an API that knows errors only. */
export class RefusalError extends Error {
  readonly refusal: EgressRefusal;

  constructor(refused: EgressRefusal) {
    super(refused.message);
    this.refusal = refused;
  }
}

export function rawAnswer({ status, code, message }: EgressRefusal): string {
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nProxy-Error: ${code}\r\nContent-Type: text/plain\r\n`;
  return `${head}Content-Length: ${Buffer.byteLength(message) + 1}\r\nConnection: close\r\n\r\n${message}\n`;
}
