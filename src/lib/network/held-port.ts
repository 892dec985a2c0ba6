/**
 * Keeps a port open between two servers: the listening socket stays open while no server uses it, and accepted
 * connections wait, unread, for the next server of this process or for another process. Node has no public API to take
 * a listening socket from a running server, nor to pass on an accepted connection unread. The few Node internals that
 * this needs are used in this file and nowhere else.
 */
import net, { createServer, isIPv6, type Server, type Socket } from "node:net";
import { getSystemErrorName } from "node:util";

interface Handle {
  fd: number;
  reading: boolean;
  readStart(): void;
  readStop(): void;
}

interface ServerInternals {
  _handle: Handle | null;
  _connections: number;
}

interface SocketInternals {
  _handle: Handle | null;
  _server?: ServerInternals | null;
  server?: unknown;
}

/** A bound or listening socket that no server of this process accepts from. Other processes may. */
export interface ParkedPort {
  readonly fd: number;
  readonly port: number;
  /** Lets a server accept from the socket. There is no way back. */
  giveTo(server: Server): void;
  close(): void;
}

interface ParkedHandle {
  fd: number;
  getsockname(out: { port?: number }): number;
  close(): void;
}

interface NetInternals {
  _createServerHandle(host: string | null, port: number, family: 4 | 6, fd?: number): ParkedHandle | number;
}

/**
 * Opens a port without accepting from it: the process that accepts also calls listen(2). `host` is an address; `fd` is
 * an inherited socket.
 */
export function parkPort(host: string, port: number, fd?: number): ParkedPort {
  const { _createServerHandle: open } = net as unknown as NetInternals;
  const handle = fd === undefined ? open(host, port, isIPv6(host) ? 6 : 4) : open(null, 0, 4, fd);
  const name: { port?: number } = {};
  // libuv tells with the first use of the handle that the address is taken.
  const failure = typeof handle === "number" ? handle : handle.getsockname(name);
  if (typeof handle === "number" || failure !== 0) {
    if (typeof handle !== "number") handle.close();
    const code = getSystemErrorName(failure);
    throw Object.assign(new Error(`cannot open port ${port} on ${host}: ${code}`), { code });
  }
  return {
    fd: handle.fd,
    port: name.port ?? port,
    giveTo: (server) => void server.listen(handle),
    close: () => handle.close(),
  };
}

/** A port held by this process, or a file descriptor inherited from the process that held it. */
export type TakenPort = HeldPort | { fd: number };

const internalsOf = (server: Server): ServerInternals => server as unknown as ServerInternals;

export class HeldPort {
  /** Reads nothing from accepted connections: the bytes stay in the kernel for the process that takes over. */
  readonly #holder = createServer({ pauseOnConnect: true, allowHalfOpen: true, noDelay: true }, (socket) =>
    this.hold(socket),
  );
  #sockets: Socket[] = [];

  /** Takes the port from a server that listens on it, whose connections stay with it, or a parked port. */
  constructor(from: Server | ParkedPort) {
    if ("giveTo" in from) from.giveTo(this.#holder);
    else moveHandle(from, this.#holder);
  }

  /** File descriptor of the listening socket, to be passed to a child process. */
  get fd(): number {
    return internalsOf(this.#holder)._handle?.fd ?? -1;
  }

  /** Holds one more connection for the next server. No byte of a request may have been read from it. */
  hold(socket: Socket): void {
    detach(socket);
    socket.on("error", () => {}); // a client that gives up is no failure
    this.#sockets.push(socket);
  }

  /** Hands the port and its connections to a server of this process. */
  giveTo(server: Server): void {
    moveHandle(this.#holder, server);
    for (const socket of this.#takeSockets()) adopt(server, socket);
  }

  /** Closes the port after another process listens on the same socket; returns the connections to send there. */
  close(): Socket[] {
    this.#holder.close();
    return this.#takeSockets();
  }

  #takeSockets(): Socket[] {
    const sockets = this.#sockets.filter((socket) => !socket.destroyed);
    this.#sockets = [];
    return sockets;
  }
}

/** File descriptor of a server's listening socket. */
export const listeningFd = (server: Server): number => internalsOf(server)._handle?.fd ?? -1;

/** Serves a connection that another server or process has accepted. */
export function adopt(server: Server, socket: Socket): void {
  socket.allowHalfOpen = true; // like the sockets that an HTTP server accepts itself
  server.emit("connection", socket);
  socket.resume();
  const { _handle: handle } = socket as unknown as SocketInternals;
  if (!handle || handle.reading) return;
  handle.reading = true; // the stream still waits for the read it requested before `detach`
  handle.readStart();
}

function moveHandle(from: Server, to: Server): void {
  to.listen(from); // shares the handle; `to` gets its connections from now on
  internalsOf(from)._handle = null; // otherwise closing `from` would close the shared handle
}

/** Detaches a connection from the server that accepted it: the server neither reads it nor waits for its end. */
export function detach(socket: Socket): void {
  const inside = socket as unknown as SocketInternals;
  socket.pause();
  if (inside._handle) {
    inside._handle.reading = false;
    inside._handle.readStop();
  }
  if (inside._server) inside._server._connections -= 1;
  inside._server = null;
  inside.server = null;
}
