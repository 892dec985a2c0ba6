/**
 * Connections that have not sent a request yet. Programs in the sandbox can reach the daemon's sockets, and each such
 * connection costs a descriptor: they end in time, and of many the oldest is closed.
 */
import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import { HALF_OPEN_MAX } from "../../contract/sandbox-wire.ts";

/** Time for the first request's head. */
const HEAD_WAIT_MS = 15_000;

export function boundHalfOpen(server: Server): void {
  const waiting = new Map<Socket, NodeJS.Timeout>();
  const leave = (socket: Socket): void => {
    clearTimeout(waiting.get(socket));
    waiting.delete(socket);
  };
  server.on("connection", (socket: Socket) => {
    waiting.set(socket, setTimeout(() => socket.destroy(), HEAD_WAIT_MS).unref());
    socket.once("close", () => leave(socket));
    const [oldest] = waiting.keys();
    if (oldest === undefined || waiting.size <= HALF_OPEN_MAX) return;
    // At once, because its close comes later than the next connection of a flood.
    leave(oldest);
    oldest.destroy();
  });
  for (const event of ["request", "upgrade"])
    server.prependListener(event, ({ socket }: IncomingMessage) => leave(socket));
}
