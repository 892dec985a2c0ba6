/**
 * Open connections of clients, by address. Each costs a file descriptor and some memory, and a client pays nothing for
 * an idle one, so their number is bounded: networks share it evenly when it runs short. A connection that gets no place
 * is told 503 before anything of it is read.
 */
import { readFileSync } from "node:fs";
import { type Server as NetServer, Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import { NetworkShares } from "../lib/network/network-shares.ts";
import type { Proxies } from "../lib/network/proxies.ts";

/** How long a refused client may take to read its answer, and how many may do so at a time. */
const FAREWELL_MS = 1000;
const FAREWELLS_MAX = 256;
/** Part of the file descriptors for clients: the same number goes to workloads, the rest to files and the database. */
const DESCRIPTORS_SHARE = 0.4;

const BUSY = JSON.stringify({
  error: {
    code: "OVERLOADED",
    status: 503,
    retryable: true,
    message: "The server has as many connections as it takes.",
  },
});
const ANSWER = `HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: application/json\r\nContent-Length: ${BUSY.length}\r\nConnection: close\r\n\r\n${BUSY}`;

export class Connections {
  readonly #shares: NetworkShares;
  readonly #proxies: Proxies;
  readonly #counted = new WeakSet<Socket>();
  #farewells = 0;

  /** Connections of `proxies` are not counted: many clients share each, and the proxy has limits of its own. */
  constructor(max: number, proxies: Proxies) {
    this.#shares = new NetworkShares(max);
    this.#proxies = proxies;
  }

  get open(): number {
    return this.#shares.total;
  }

  /** Whether the connection may go on; a connection that may not is ended here. */
  admit(socket: Socket, isTls: boolean): boolean {
    const { remoteAddress } = socket;
    // Connections from inside a workload have no address and are counted elsewhere.
    if (remoteAddress === undefined || this.#counted.has(socket) || this.#proxies.include(remoteAddress)) return true;
    if (this.#shares.enter(remoteAddress) !== null) {
      this.#refuse(socket, isTls);
      return false;
    }
    this.#counted.add(socket);
    socket.once("close", () => this.#shares.leave(remoteAddress));
    return true;
  }

  #refuse(socket: Socket, isTls: boolean): void {
    socket.on("error", () => {});
    if (isTls || this.#farewells >= FAREWELLS_MAX) {
      socket.destroy();
      return;
    }
    this.#farewells += 1;
    const timer = setTimeout(() => socket.destroy(), FAREWELL_MS);
    socket.once("close", () => {
      clearTimeout(timer);
      this.#farewells -= 1;
    });
    // What the client sends is read and dropped: closing with unread bytes would take the answer from the client.
    socket.resume();
    socket.end(ANSWER);
  }
}

/** Puts the bound in front of all listeners for connections that are there. */
export function boundConnections(server: NetServer, connections: Connections): void {
  const listeners = server.listeners("connection") as ((socket: Socket) => void)[];
  const isTls = server instanceof TlsServer;
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    if (socket instanceof Socket && !connections.admit(socket, isTls)) return;
    for (const listener of listeners) listener.call(server, socket);
  });
}

/** As many connections of clients as the process has file descriptors for; `wanted` where that cannot be known. */
export function connectionsWithin(wanted: number): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1")) ?? [];
    return soft === undefined ? wanted : Math.min(wanted, Math.floor(Number(soft) * DESCRIPTORS_SHARE));
  } catch {
    return wanted;
  }
}
