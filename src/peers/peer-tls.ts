/**
 * TLS between servers of one database. Both ends prove that they have the key derived from the platform's secret; there
 * are no certificates. ECDHE makes a key for each connection, so a recorded connection cannot be read with the shared
 * key later. Only suites with a pre-shared key are offered: an end without the key cannot finish a handshake.
 */
import { constants } from "node:crypto";
import { connect as connectTcp } from "node:net";
import { connect, type SecureContextOptions, type TLSSocket } from "node:tls";

export const PEER_TLS = {
  // OpenSSL has pre-shared keys with ECDHE and an AEAD cipher in TLS 1.2 only.
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
  ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
  // Without tickets every connection shows the key anew.
  secureOptions: constants.SSL_OP_NO_TICKET,
} satisfies SecureContextOptions;

export const PEER_TCP = {
  noDelay: true,
  // One direction of a tunnel may end before the other. Node does not tell such an end from that of a closed
  // connection; the probes do, because the other system refuses them once the connection is gone.
  allowHalfOpen: true,
  keepAlive: true,
  keepAliveInitialDelay: 15_000,
};

/** Identities of TLS have 128 bytes at most. */
export const NODE_ID = /^[\x21-\x7e]{1,128}$/;

export interface PeerAddress {
  host: string;
  port: number;
}

export interface PeerIdentity {
  /** Id of this node. */
  self: string;
  key: Buffer;
}

/** Connects to the node `to`. A server at that address which is another node is refused, although it has the key. */
export function dialPeer(
  { self, key }: PeerIdentity,
  to: string,
  { host, port }: PeerAddress,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  let found: string | null = null;
  const tcp = connectTcp({ host, port, ...PEER_TCP });
  const socket = connect({
    ...PEER_TLS,
    socket: tcp,
    pskCallback: (hint) => {
      found = hint;
      return hint === to ? { psk: key, identity: self } : null;
    },
    checkServerIdentity: () => undefined,
  });
  const fail = (error: Error): void => {
    signal.removeEventListener("abort", onAbort);
    tcp.destroy();
    socket.destroy();
    reject(found === null || found === to ? error : new Error(`the server at ${host}:${port} is the node ${found}`));
  };
  const onAbort = (): void => fail(signal.reason as Error);
  const onClose = (): void => fail(new Error("the server closed the connection during the handshake"));
  // A failed TCP connection is reported by the TLS socket only when it has begun its handshake.
  tcp.once("error", fail);
  socket.once("error", fail).once("close", onClose);
  socket.once("secureConnect", () => {
    signal.removeEventListener("abort", onAbort);
    tcp.off("error", fail).on("error", ignore);
    socket.off("error", fail).off("close", onClose);
    socket.disableRenegotiation();
    resolve(socket);
  });
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return promise;
}

const ignore = (): void => {};
