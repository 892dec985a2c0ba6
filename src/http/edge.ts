/** The server's port: the raw address of a request selects the gateway or the management API. */
import { readFileSync, unwatchFile, watchFile } from "node:fs";
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Config } from "../config.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Running } from "../lib/lifecycle.ts";
import { adopt, HeldPort, listeningFd, type TakenPort } from "../lib/network/held-port.ts";
import { createServer } from "../lib/network/node-http.ts";
import { attachGateway, type InferenceDoor, type PlainManagement, SERVER_OPTIONS } from "./attach.ts";

/** Time that requests in flight get when the server stops. */
const DRAIN_MS = 10_000;
/** Interval at which idle connections are closed while the server drains. */
const SWEEP_MS = 50;
const CERTIFICATE_LOOK_MS = 5000;

export interface Edge extends Running {
  /** Creates the server. `plain` gets management requests first, `management` those it does not take. */
  serve(management: RequestListener, plain: PlainManagement): Server;
  /** A request that the gateway leaves to the management routes. */
  manage(req: IncomingMessage, res: ServerResponse): void;
  /** Accepts a connection from inside a workload, which did not come through the port. */
  accept(socket: Duplex): void;
  /** Accepts a connection to the port that another process accepted. */
  adopt(socket: Socket): void;
  /** `taken` is the port of an earlier server; absent = opens a new port, as configured. */
  listen(taken?: TakenPort): Promise<string>;
  /** File descriptor of the listening socket. */
  fd(): number;
  /** New and idle connections wait from now on; requests in flight get `drainMs` when the edge stops. */
  hold(drainMs: number): HeldPort;
}

/** `peer` serves the requests that other servers of the database send for themselves. */
export function createEdge(config: Config, gateway: InferenceDoor, peer?: RequestListener): Edge {
  let server: Server | null = null;
  let routes: RequestListener | null = null;
  let held: HeldPort | null = null;
  let drainMs = DRAIN_MS;
  return {
    serve(management, plain) {
      routes = management;
      server =
        config.tls_cert && config.tls_key
          ? createReloadingTls(config.tls_cert, config.tls_key)
          : createServer(SERVER_OPTIONS);
      attachGateway(server, gateway, { request: management, plain, ...(peer && { peer }) });
      return server;
    },
    manage: (req, res) => routes?.(req, res),
    accept(socket) {
      // The connection is local and not encrypted, so on a TLS server it enters after the handshake.
      if (server?.listening) server.emit(config.tls_cert ? "secureConnection" : "connection", socket);
      else socket.destroy();
    },
    adopt(socket) {
      if (server) adopt(server, socket);
    },
    fd: () => (server ? listeningFd(server) : -1),
    hold(graceMs) {
      if (!server) throw new Error("the edge was never opened");
      drainMs = graceMs;
      const port = new HeldPort(server);
      gateway.giveUpIdle((socket) => port.hold(socket));
      held = port;
      return port;
    },
    async listen(taken) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      server?.once("error", reject).once("listening", resolve);
      if (taken instanceof HeldPort) server && taken.giveTo(server);
      else if (taken) server?.listen(taken);
      else server?.listen(config.port, config.host);
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
      if (!open || (!open.listening && !held)) return;
      const closed = new Promise((resolve) => open.close(resolve));
      // A connection whose last request was just answered would otherwise stay open for another one.
      const sweep = setInterval(() => open.closeIdleConnections(), SWEEP_MS);
      const timer = setTimeout(() => open.closeAllConnections(), drainMs);
      try {
        await gateway.stop(drainMs);
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
      // A certificate may be half written while it is replaced; the old one is used until the next check.
    }
  });
  return server as unknown as Server;
}
