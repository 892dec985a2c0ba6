/**
 * A body that stops arriving would hold its connection, and what came of it, for ever. One that is read whole has a time
 * to be there; a stream may last as long as it moves.
 */
import type { IncomingMessage } from "node:http";

export const BODY_WAIT_MS = 120_000;

export function watchBody(
  request: IncomingMessage,
  { isStream, waitMs }: { isStream: boolean; waitMs: number },
  onLate: () => void,
): void {
  const { headers, socket } = request;
  if (headers["content-length"] === undefined && headers["transfer-encoding"] === undefined) return;
  let seen = socket.bytesRead;
  const stop = (): void => clearInterval(timer);
  const timer = setInterval(() => {
    // Where bytes lie unread, whoever reads them is slow, and not the client.
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
