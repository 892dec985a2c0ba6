/**
 * Connections that have not sent a complete request yet. Each costs the server a file descriptor and the client
 * nothing, so their number is limited: the oldest is closed. A normal client sends its request at once and leaves this
 * set.
 */
import type { Socket } from "node:net";

/** Time limit of the first request's head. A head is a packet or two; a slower client is an attack or a preconnect. */
export const HEAD_WAIT_MS = 15_000;

export class Newcomers {
  readonly #max: number;
  /** Keyed by the client's address and port, which a TLS socket shares with its TCP socket. */
  readonly #sockets = new Map<string, Socket>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#sockets.size;
  }

  /** A connection from inside a workload has no address and is counted elsewhere. */
  add(socket: Socket): void {
    const peer = peerOf(socket);
    if (peer === null) return;
    this.#sockets.set(peer, socket);
    socket.once("close", () => {
      if (this.#sockets.get(peer) === socket) this.#sockets.delete(peer);
    });
    const [oldest] = this.#sockets;
    if (oldest === undefined || this.#sockets.size <= this.#max) return;
    // At once, because its close comes later than the next connection of a flood.
    this.#sockets.delete(oldest[0]);
    oldest[1].destroy();
  }

  /** Called when a complete request has arrived. */
  arrived(socket: Pick<Socket, "remoteAddress" | "remotePort">): void {
    const peer = peerOf(socket);
    if (peer !== null) this.#sockets.delete(peer);
  }
}

const peerOf = ({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string | null =>
  remoteAddress === undefined ? null : `${remoteAddress} ${remotePort}`;
