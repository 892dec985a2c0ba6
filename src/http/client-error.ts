/**
 * Bytes that cannot be parsed as a request cannot be routed: they are answered on the raw connection, which then
 * closes.
 */

import type { Duplex } from "node:stream";
import { GatewayError } from "../contract/gateway-errors.ts";
import { STATUS_CODES } from "../lib/network/node-http.ts";
import type { PlatformResponseOptions } from "./platform-response.ts";
import { nextRequestId } from "./request-id.ts";

const KNOWN: Record<string, GatewayError> = {
  HPE_HEADER_OVERFLOW: new GatewayError("REQUEST_HEADERS_TOO_LARGE"),
  ERR_HTTP_REQUEST_TIMEOUT: new GatewayError("REQUEST_TIMEOUT"),
};
const BAD_REQUEST = new GatewayError("BAD_REQUEST", "The request is not valid HTTP.");

export function answerClientError(
  { rules, clock, docsUrl }: PlatformResponseOptions,
  error: NodeJS.ErrnoException,
  socket: Duplex,
): void {
  // After a reset the client is gone; inside a response that has begun, an error message would corrupt it.
  if (error.code === "ECONNRESET" || !socket.writable || hasResponse(socket)) {
    socket.destroy();
    return;
  }
  const known = KNOWN[error.code ?? ""] ?? BAD_REQUEST;
  const body = JSON.stringify(known.toWire(clock.now(), docsUrl));
  let head = `HTTP/1.1 ${known.status} ${STATUS_CODES[known.status]}\r\n`;
  for (let i = 0; i < rules.source.length; i += 2) head += `${rules.source[i]}: ${rules.source[i + 1]}\r\n`;
  head += `X-Request-Id: ${nextRequestId()}\r\n`;
  head += `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n`;
  socket.end(head + body);
}

/** Node stores the current response of a connection in this field and checks it in the same way. */
function hasResponse(socket: Duplex): boolean {
  const current: unknown = "_httpMessage" in socket ? socket._httpMessage : null;
  return current !== null && current !== undefined;
}
