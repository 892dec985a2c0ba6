/** Connects to providers, with and without TLS, and only to allowed addresses. */
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";

export interface DialOptions {
  /** Judges what a name resolves to. */
  lookup: LookupFunction;
  timeoutMs: number;
}

/** Long reasoning is silent for minutes: without a sign of life, gear in between forgets the connection. */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelay: 60_000, noDelay: true };
/** A session saves a round trip and the certificate's check; tenants choose addresses, so not all are kept. */
const SESSIONS_MAX = 1000;

export class ConnectTimeout extends Error {
  readonly code = "CONNECT_TIMEOUT";
}

/** The other side could not prove that it is who was called: it will not be able to the next time either. */
export class CertificateRefused extends Error {
  readonly code = "CERTIFICATE_REFUSED";
}

export function createDialer({ lookup, timeoutMs }: DialOptions): (url: URL) => Promise<Socket> {
  const sessions = new Map<string, Buffer>();
  let context: SecureContext | null = null;

  function open(url: URL): Socket {
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if (url.protocol === "http:") return connectTcp({ ...KEEP_ALIVE, lookup, host, port: Number(url.port || 80) });
    context ??= createSecureContext();
    const session = sessions.get(url.origin);
    const socket: TLSSocket = connectTls({
      ...KEEP_ALIVE,
      ...(isIP(host) ? {} : { servername: host }),
      ...(session ? { session } : {}),
      ALPNProtocols: ["http/1.1"],
      secureContext: context,
      lookup,
      host,
      port: Number(url.port || 443),
    });
    socket.on("session", (next: Buffer) => {
      if (sessions.size >= SESSIONS_MAX) sessions.clear();
      sessions.set(url.origin, next);
    });
    return socket;
  }

  return (url) =>
    new Promise((resolve, reject) => {
      const socket = open(url);
      const timer = setTimeout(() => socket.destroy(new ConnectTimeout("no connection in time")), timeoutMs);
      const failed = (error: Error): void => {
        clearTimeout(timer);
        // A session that the other side no longer knows must not stand in the way of the next try.
        sessions.delete(url.origin);
        const why = "authorizationError" in socket ? socket.authorizationError : null;
        reject(why ? new CertificateRefused(String(why), { cause: error }) : error);
      };
      socket.once("error", failed);
      socket.once(url.protocol === "http:" ? "connect" : "secureConnect", () => {
        clearTimeout(timer);
        socket.off("error", failed);
        resolve(socket);
      });
    });
}
