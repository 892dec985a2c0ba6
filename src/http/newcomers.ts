/**
 * Connections that have not sent a whole request yet. One costs a stranger nothing and the server a descriptor, so their
 * number is bounded: the oldest makes room. A client with a request sends it at once and is no newcomer any more.
 */
import type { Socket } from "node:net";

/** A head is a packet or two: longer is an attack, or a client that connected ahead and will connect again. */
export const HEAD_WAIT_MS = 15_000;

export class Newcomers {
  readonly #max: number;
  /** By the client's own address and port, which an encrypted connection has in common with the one below it. */
  readonly #sockets = new Map<string, Socket>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#sockets.size;
  }

  /** A connection from inside a workload has no address; its door counts it. */
  add(socket: Socket): void {
    const peer = peerOf(socket);
    if (peer === null) return;
    this.#sockets.set(peer, socket);
    socket.once("close", () => {
      if (this.#sockets.get(peer) === socket) this.#sockets.delete(peer);
    });
    const [oldest] = this.#sockets.values();
    if (this.#sockets.size > this.#max) oldest?.destroy();
  }

  /** A whole request has come. */
  arrived(socket: Pick<Socket, "remoteAddress" | "remotePort">): void {
    const peer = peerOf(socket);
    if (peer !== null) this.#sockets.delete(peer);
  }
}

const peerOf = ({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string | null =>
  remoteAddress === undefined ? null : `${remoteAddress} ${remotePort}`;
