/**
 * Time limits of request bodies, so that a stalled body does not hold its connection for ever. A body that is read
 * whole has a total limit; a stream has an idle limit.
 */
import type { IncomingMessage } from "node:http";

export const BODY_WAIT_MS = 120_000;

export function watchBody(
  request: IncomingMessage,
  { isStream, waitMs }: { isStream: boolean; waitMs: number },
  onLate: () => void,
): void {
  const { headers, socket, httpVersionMajor } = request;
  const framed = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
  // A body of HTTP/2 needs no field.
  if (!framed && httpVersionMajor < 2) return;
  let seen = socket.bytesRead;
  const stop = (): void => clearInterval(timer);
  const timer = setInterval(() => {
    // Unread bytes mean that the reader is slow, not the client.
    const moves = socket.bytesRead !== seen || request.readableLength > 0;
    seen = socket.bytesRead;
    if (request.complete) stop();
    else if (!isStream || !moves) {
      stop();
      onLate();
    }
  }, waitMs);
  timer.unref();
  request.once("end", stop).once("close", stop);
}
