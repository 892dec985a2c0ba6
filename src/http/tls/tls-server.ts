/**
 * The server's port with TLS: HTTP/1.1 and HTTP/2 by ALPN, the certificate by the name that the client asks for. Plain
 * HTTP on the same port is served to programs of this machine and redirected for everybody else.
 */
import type { Server } from "node:http";
import { createServer, type Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import {
  type Server as ChallengeServer,
  createServer as createChallenges,
  createSecureContext,
  type SecureContext,
} from "node:tls";
import type { Credential } from "../../lib/x509/certificate.ts";
import { SERVER_OPTIONS } from "../attach.ts";
import { onFirstBytes } from "./first-bytes.ts";

export interface TlsOptions {
  /** The certificate for clients that name no host, or one without a certificate of its own. */
  fallback: Credential;
  /** The certificate of a host; undefined where it has none of its own. Must answer from memory. */
  contextOf?: ((host: string) => SecureContext | undefined) | undefined;
  /** The certificate that answers a challenge of an authority for a host (RFC 8737); null when nobody waits for one. */
  challengeCredential?: ((host: string) => Promise<Credential | null>) | undefined;
  /** Gets connections that begin with plain HTTP. */
  plain(socket: Socket): void;
}

export function createTls({ fallback, contextOf, challengeCredential, plain }: TlsOptions): TlsServer {
  const server = createServer({
    ...SERVER_OPTIONS,
    handshakeTimeout: SERVER_OPTIONS.headersTimeout,
    ALPNProtocols: ["h2", "http/1.1"],
    ...asNode(fallback),
    SNICallback: (host, done) => done(null, contextOf?.(host.toLowerCase())),
  });
  const [shakeHands] = server.listeners("connection") as ((socket: Socket) => void)[];
  server.removeAllListeners("connection");
  const challenges = challengeCredential && createChallengeServer(challengeCredential);
  server.on("connection", (socket: Socket) =>
    onFirstBytes(socket, (first, isTls) => {
      if (!isTls) plain(socket);
      else if (challenges && first.includes(CHALLENGE_PROTOCOL)) challenges.emit("connection", socket);
      else shakeHands?.call(server, socket);
    }),
  );
  return server;
}

/** The protocol that an authority asks for in its handshake. */
const CHALLENGE_PROTOCOL = "acme-tls/1";

/** Serves handshakes and nothing else: the certificate is the answer. */
function createChallengeServer(credentialOf: (host: string) => Promise<Credential | null>): ChallengeServer {
  const server = createChallenges(
    {
      ALPNProtocols: [CHALLENGE_PROTOCOL],
      handshakeTimeout: SERVER_OPTIONS.headersTimeout,
      SNICallback(host, done) {
        credentialOf(host.toLowerCase()).then(
          (found) =>
            found ? done(null, createSecureContext(asNode(found))) : done(new Error("no challenge for this host")),
          (error: Error) => done(error),
        );
      },
    },
    (socket) => socket.end(),
  );
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}

/** A certificate and its key under the names that Node's functions take. */
export const asNode = ({ certificate, key }: Credential): { cert: string; key: string } => ({ cert: certificate, key });

/** Node's types keep the two kinds of server apart; everything that this program uses is in both. */
export const asHttp = (server: TlsServer): Server => server as unknown as Server;
