/**
 * A port between two servers: the listening socket stays open while nobody serves it, and every connection that arrives
 * waits, unread, for the next server of this process or for another process.
 *
 * Node has no public way to take a listening socket from a running server, nor to give an accepted connection away
 * unread. The few internals that this needs are touched in this file and nowhere else.
 */
import { createServer, type Server, type Socket } from "node:net";

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

/** Held by this process, or inherited as a descriptor from the process that held it. */
export type TakenPort = HeldPort | { fd: number };

const internalsOf = (server: Server): ServerInternals => server as unknown as ServerInternals;

export class HeldPort {
  /** Reads nothing from what it accepts: bytes stay with the kernel, so that another process can have them. */
  readonly #holder = createServer({ pauseOnConnect: true, allowHalfOpen: true, noDelay: true }, (socket) =>
    this.hold(socket),
  );
  #sockets: Socket[] = [];

  /** Takes the port from a server that listens on it. Connections that the server has accepted stay with it. */
  constructor(server: Server) {
    moveHandle(server, this.#holder);
  }

  /** Of the listening socket, for a process that is started with it. */
  get fd(): number {
    return internalsOf(this.#holder)._handle?.fd ?? -1;
  }

  /** A connection that waits for the next server too. Nothing of a request may have been read from it. */
  hold(socket: Socket): void {
    detach(socket);
    socket.on("error", () => {}); // a client that does not wait is no failure
    this.#sockets.push(socket);
  }

  /** The next server is one of this process. */
  giveTo(server: Server): void {
    moveHandle(this.#holder, server);
    for (const socket of this.#takeSockets()) adopt(server, socket);
  }

  /** Another process listens on the same socket by now; returns the connections that are to be sent there. */
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

/** The descriptor of the socket that a server listens on. */
export const listeningFd = (server: Server): number => internalsOf(server)._handle?.fd ?? -1;

/** Serves a connection that somebody else has accepted. */
export function adopt(server: Server, socket: Socket): void {
  socket.allowHalfOpen = true; // as sockets that an HTTP server accepts itself
  server.emit("connection", socket);
  socket.resume();
  const { _handle: handle } = socket as unknown as SocketInternals;
  if (!handle || handle.reading) return;
  handle.reading = true; // the stream waits for a read that it has asked for before `detach`
  handle.readStart();
}

function moveHandle(from: Server, to: Server): void {
  to.listen(from); // shares the handle, and from now on gets its connections
  internalsOf(from)._handle = null; // closing `from` would close it
}

/** The server that has accepted a connection neither reads from it nor waits for its end any more. */
function detach(socket: Socket): void {
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
