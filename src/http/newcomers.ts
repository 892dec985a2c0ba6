/**
 * Connections that have not sent a complete request yet. Each costs the server a file descriptor and the client
 * nothing, so their number is limited. A normal client sends its request at once and leaves this set. When the set is
 * full, a network with more than its even share loses its own oldest connection; otherwise the oldest of all is closed.
 */
import type { Socket } from "node:net";
import { memberNames, NETWORK_LEVELS } from "../lib/network/client-network.ts";

/** Time limit of the first request's head. A head is a packet or two; a slower client is an attack or a preconnect. */
export const HEAD_WAIT_MS = 15_000;

interface Newcomer {
  socket: Socket;
  /** One of each width, widest last. */
  networks: readonly string[];
  /** Listener of the socket's close, for as long as the connection is a newcomer. */
  closed(): void;
}

export class Newcomers {
  readonly #max: number;
  /** Keyed by the client's address and port, which a TLS socket shares with its TCP socket. */
  readonly #waiting = new Map<string, Newcomer>();
  /** The waiting peers of each network, by width. */
  readonly #byNetwork = NETWORK_LEVELS.map(() => new Map<string, Set<string>>());

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** A connection from inside a workload has no address and is counted elsewhere. */
  add(socket: Socket): void {
    const peer = peerOf(socket);
    if (peer === null) return;
    const networks = memberNames(socket.remoteAddress ?? "");
    this.#remove(peer);
    const closed = (): void => this.#remove(peer);
    this.#waiting.set(peer, { socket, networks, closed });
    socket.on("close", closed);
    for (const [level, byNetwork] of this.#byNetwork.entries()) {
      const network = networks[level] ?? "";
      byNetwork.set(network, (byNetwork.get(network) ?? new Set()).add(peer));
    }
    if (this.#waiting.size > this.#max) this.#closeOne(networks);
  }

  /** Called when a complete request has arrived. */
  arrived(socket: Pick<Socket, "remoteAddress" | "remotePort">): void {
    const peer = peerOf(socket);
    if (peer !== null) this.#remove(peer);
  }

  #closeOne(networks: readonly string[]): void {
    const greedy = this.#byNetwork.map((byNetwork, level) => {
      const own = byNetwork.get(networks[level] ?? "");
      return own !== undefined && own.size > this.#max / byNetwork.size ? own : null;
    });
    // Somebody with many narrow networks would make the even share of others small there, but not among the widest.
    const own = greedy.at(-1) ? greedy.find((peers) => peers !== null) : null;
    const [oldest = ""] = own ?? this.#waiting.keys();
    const found = this.#waiting.get(oldest);
    // At once, because its close comes later than the next connection of a flood.
    this.#remove(oldest);
    found?.socket.destroy();
  }

  #remove(peer: string): void {
    const found = this.#waiting.get(peer);
    if (found === undefined) return;
    this.#waiting.delete(peer);
    found.socket.off("close", found.closed);
    for (const [level, byNetwork] of this.#byNetwork.entries()) {
      const network = found.networks[level] ?? "";
      const own = byNetwork.get(network);
      own?.delete(peer);
      if (own?.size === 0) byNetwork.delete(network);
    }
  }
}

const peerOf = ({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string | null =>
  remoteAddress === undefined ? null : `${remoteAddress} ${remotePort}`;
