/** Ends the TLS of a client at the proxy, with a certificate of an authority that the workload trusts. */
import type { Http2ServerRequest, ServerOptions } from "node:http2";
import type { Duplex } from "node:stream";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import type { Credential } from "../../lib/x509/certificate.ts";
import type { Incoming, Sink } from "./sink.ts";
import { sinkOfHttp2 } from "./sink.ts";

export interface Interception {
  credential: Credential;
  /** HTTP/1.1 goes on here. */
  onHttp1(stream: TLSSocket): void;
  /** A request of HTTP/2. */
  onRequest(incoming: Incoming, sink: Sink): void;
}

/** Loaded when the first client speaks HTTP/2: it takes some megabytes. */
const http2 = (): typeof import("node:http2") => process.getBuiltinModule("node:http2");

const HANDSHAKE_WAIT_MS = 30_000;
/** As in a tunnel in which nothing moves. */
const IDLE_MAX_MS = 15 * 60_000;

/** Limits of one connection: as for clients of the platform. */
const LIMITS: ServerOptions = {
  settings: { maxConcurrentStreams: 100, maxHeaderListSize: 64 * 1024 },
  maxHeaderListPairs: 512,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  streamResetBurst: 200,
  streamResetRate: 33,
  // Servers of HTTP/1.1 repeat headers that HTTP/2 wants once.
  strictSingleValueFields: false,
};
const contexts = new WeakMap<Credential, SecureContext>();

/** `client` has the first bytes of its TLS still to give. */
export function intercept(client: Duplex, { credential, onHttp1, onRequest }: Interception): void {
  const { certificate: cert, key } = credential;
  const secureContext = contexts.get(credential) ?? createSecureContext({ cert, key });
  contexts.set(credential, secureContext);
  const stream = new TLSSocket(client, { isServer: true, secureContext, ALPNProtocols: ["h2", "http/1.1"] });
  const timer = setTimeout(() => stream.destroy(), HANDSHAKE_WAIT_MS).unref();
  stream.on("error", () => stream.destroy()); // a client that does not trust the certificate, or hung up
  stream.once("close", () => {
    clearTimeout(timer);
    client.destroy();
  });
  stream.once("secure", () => {
    clearTimeout(timer);
    if (stream.alpnProtocol !== "h2") return onHttp1(stream);
    // A client that ends its side has left: HTTP/2 has no half of a connection.
    stream.allowHalfOpen = false;
    const server = http2().createServer(LIMITS, (incoming, response) =>
      onRequest(framed(incoming), sinkOfHttp2(response)),
    );
    server.on("session", (session) => session.setTimeout(IDLE_MAX_MS, () => session.destroy()));
    server.on("sessionError", () => stream.destroy());
    server.emit("connection", stream);
    // The session waits for this event on a TLS socket that no tls.Server made.
    stream.emit("secureConnect");
  });
}

/** HTTP/1.1, in which the request may go on, needs a header where a body follows. */
function framed(incoming: Http2ServerRequest): Http2ServerRequest {
  const { headers, rawHeaders, stream } = incoming;
  if (headers["content-length"] === undefined && !stream.endAfterHeaders)
    rawHeaders.push("transfer-encoding", "chunked");
  return incoming;
}
