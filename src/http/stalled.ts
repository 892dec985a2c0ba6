/**
 * A client that has stopped reading: what was written for it lies in the server's memory. Such a connection is cut
 * when none of it was taken for a while; a slow client that goes on reading is not.
 */
import type { Duplex } from "node:stream";

/** Longest time in which a client takes nothing of an answer that is complete. */
const STALLED_MS = 60_000;

/** Whether a good part of what was written is still here. */
export const isUnread = ({ destroyed, writableLength, writableHighWaterMark }: Duplex): boolean =>
  !destroyed && writableLength >= writableHighWaterMark;

/** Call when an answer was written to its end. */
export function cutWhenStalled(socket: Duplex): void {
  if (!isUnread(socket) || !hasTimeout(socket) || socket.timeout === STALLED_MS) return;
  const cut = (): void => void socket.destroy();
  const over = (): void => {
    socket.off("timeout", cut);
    socket.off("drain", over);
    socket.off("close", over);
    // Node's server has set the time for the next request meanwhile, if the socket is its own.
    if (socket.timeout === STALLED_MS) socket.setTimeout(0);
  };
  // Node counts bytes that the kernel took as life.
  socket.setTimeout(STALLED_MS);
  socket.on("timeout", cut);
  socket.on("drain", over);
  socket.on("close", over);
}

interface Timed {
  timeout?: number | undefined;
  setTimeout(ms: number): unknown;
}

const hasTimeout = (socket: Duplex): socket is Duplex & Timed => "setTimeout" in socket;
