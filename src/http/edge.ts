/** The one port: the raw address of a request decides between the gateway and the management API. */
import { readFileSync, unwatchFile, watchFile } from "node:fs";
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { Duplex } from "node:stream";
import type { Config } from "../config.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Running } from "../lib/lifecycle.ts";
import { createServer } from "../lib/network/node-http.ts";
import { attachGateway, type InferenceDoor, type PlainManagement, SERVER_OPTIONS } from "./attach.ts";

/** Requests in flight get this long to finish when the server is told to stop. */
const DRAIN_MS = 10_000;
/** A connection that becomes idle while the server drains is closed this soon. */
const SWEEP_MS = 50;
const CERTIFICATE_LOOK_MS = 5000;

export interface Edge extends Running {
  /** Makes the server; its management routes arrive with this handler, plain requests for them first with `plain`. */
  serve(management: RequestListener, plain: PlainManagement): Server;
  /** A request that the gateway leaves to the management routes. */
  manage(req: IncomingMessage, res: ServerResponse): void;
  /** A connection that did not come through the port: from inside a workload. */
  accept(socket: Duplex): void;
  listen(): Promise<string>;
}

export function createEdge(config: Config, gateway: InferenceDoor): Edge {
  let server: Server | null = null;
  let routes: RequestListener | null = null;
  return {
    serve(management, plain) {
      routes = management;
      server =
        config.tls_cert && config.tls_key
          ? createReloadingTls(config.tls_cert, config.tls_key)
          : createServer(SERVER_OPTIONS);
      attachGateway(server, gateway, { request: management, plain });
      return server;
    },
    manage: (req, res) => routes?.(req, res),
    accept(socket) {
      // It comes from this machine without encryption, so a TLS server meets it where its handshakes end.
      if (server?.listening) server.emit(config.tls_cert ? "secureConnection" : "connection", socket);
      else socket.destroy();
    },
    async listen() {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      server?.once("error", reject).listen(config.port, config.host, resolve);
      await promise.catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EADDRINUSE") throw error;
        throw new PlatformError(
          "conflict",
          `Port ${config.port} on ${config.host} is in use. Choose another with PORT or --port.`,
          { cause: error },
        );
      });
      const address = server?.address();
      const port = address !== null && typeof address === "object" ? address?.port : config.port;
      const host = config.host.includes(":") ? `[${config.host}]` : config.host;
      return `${config.tls_cert ? "https" : "http"}://${host}:${port}`;
    },
    async stop() {
      const open = server;
      if (!open?.listening) return;
      const closed = new Promise((resolve) => open.close(resolve));
      // A connection whose last request has just been answered would otherwise be kept for another one.
      const sweep = setInterval(() => open.closeIdleConnections(), SWEEP_MS);
      const timer = setTimeout(() => open.closeAllConnections(), DRAIN_MS);
      try {
        await gateway.stop(DRAIN_MS);
        await closed;
      } finally {
        clearInterval(sweep);
        clearTimeout(timer);
      }
      if (config.tls_cert) unwatchFile(config.tls_cert);
    },
  };
}

function createReloadingTls(certFile: string, keyFile: string): Server {
  const read = () => ({ cert: readFileSync(certFile), key: readFileSync(keyFile) });
  const server: TlsServer = createTlsServer({
    ...SERVER_OPTIONS,
    handshakeTimeout: SERVER_OPTIONS.headersTimeout,
    ...read(),
  });
  watchFile(certFile, { interval: CERTIFICATE_LOOK_MS }, () => {
    try {
      server.setSecureContext(read());
    } catch {
      // A certificate that is being replaced may be half there; the old one serves until the next look.
    }
  });
  return server as unknown as Server;
}
