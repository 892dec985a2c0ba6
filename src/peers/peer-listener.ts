/**
 * The port for other servers of the same database. A connection that does not prove the shared key is closed without
 * an answer; one that does is served like a client's connection, except that its requests describe their clients.
 */
import type { AddressInfo, Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { Newcomers } from "../http/newcomers.ts";
import { markPeer } from "../http/peer-field.ts";
import type { Running } from "../lib/lifecycle.ts";
import { NODE_ID, PEER_TCP, PEER_TLS, type PeerAddress, type PeerIdentity } from "./peer-tls.ts";

/** Time for a handshake, which is two round trips. */
const HANDSHAKE_MS = 5000;
/** Connections that have not proved the key yet. Above this number the oldest is closed. */
const STRANGERS_MAX = 256;

export interface PeerListener extends Running {
  readonly address: PeerAddress;
}

export interface PeerListenerOptions extends PeerIdentity {
  host: string;
  /** 0 = any free port. */
  port: number;
  /** Gets each connection that proved the key. */
  accept(socket: TLSSocket): void;
  /** Gets the reason why a connection was closed before it proved the key. */
  onRefused(error: Error): void;
  limits?: { handshakeMs?: number; strangersMax?: number };
}

export async function openPeerListener(options: PeerListenerOptions): Promise<PeerListener> {
  const { self, key, accept, onRefused, limits = {} } = options;
  const open = new Set<Socket>();
  const strangers = new Newcomers(limits.strangersMax ?? STRANGERS_MAX);
  const server = createServer({
    ...PEER_TLS,
    handshakeTimeout: limits.handshakeMs ?? HANDSHAKE_MS,
    ...PEER_TCP,
    pskIdentityHint: self,
    pskCallback: (_socket, identity) => (NODE_ID.test(identity) ? key : null),
  });
  server.on("connection", (socket) => {
    // A stranger's reset before the handshake is no event of this server.
    socket.on("error", ignore);
    strangers.add(socket);
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  server.on("tlsClientError", (error, socket) => {
    socket.destroy();
    onRefused(error);
  });
  server.on("secureConnection", (socket) => {
    strangers.arrived(socket);
    socket.disableRenegotiation();
    socket.on("error", ignore);
    markPeer(socket);
    accept(socket);
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject).listen({ host: options.host, port: options.port }, resolve);
  await promise;
  server.off("error", reject).on("error", onRefused);
  const { port } = server.address() as AddressInfo;
  return {
    address: { host: options.host, port },
    async stop() {
      const closed = new Promise((ended) => server.close(ended));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

const ignore = (): void => {};
