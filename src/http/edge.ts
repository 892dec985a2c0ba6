/** The server's port: the raw address of a request selects the gateway or the management API. */
import { lookup } from "node:dns/promises";
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { createServer as createListener, type Server as NetServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { SecureContext } from "node:tls";
import type { Config } from "../config.ts";
import { PlatformError } from "../contract/errors.ts";
import type { Running } from "../lib/lifecycle.ts";
import { adopt, HeldPort, listeningFd, type ParkedPort, parkPort, type TakenPort } from "../lib/network/held-port.ts";
import { createServer } from "../lib/network/node-http.ts";
import { isTls, proxiesOf } from "../lib/schemas/tls-settings.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { Credential } from "../lib/x509/certificate.ts";
import { attachGateway, type InferenceDoor, type Management, type PlainManagement, SERVER_OPTIONS } from "./attach.ts";
import { boundConnections } from "./connections.ts";
import { readProxyHeaders } from "./proxied.ts";
import { type DefaultCertificate, openDefaultCertificate } from "./tls/default-certificate.ts";
import { createRedirect } from "./tls/redirect.ts";
import { asHttp, asNode, createTls } from "./tls/tls-server.ts";

/** Time that requests in flight get when the server stops. */
const DRAIN_MS = 10_000;
/** Interval at which idle connections are closed while the server drains. */
const SWEEP_MS = 50;

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
  /** The server's own certificate; null without TLS. */
  certificate(): DefaultCertificate | null;
  /** File descriptor of the listening socket. */
  fd(): number;
  /** Accepts on a parked port itself from now on, because no edge process does. */
  takePort(): void;
  /** New and idle connections wait from now on; requests in flight get `drainMs` when the edge stops. */
  hold(drainMs: number): HeldPort;
  /** Accepts no more connections; resolves when those that are open have ended by themselves. */
  retire(): Promise<void>;
  /** Requests in flight get `graceMs`; default: what `hold` was told, or 10 s. */
  stop(graceMs?: number): Promise<void>;
}

/** The settings of the port. */
export type EdgeConfig = Pick<
  Config,
  | "host"
  | "port"
  | "data"
  | "domain"
  | "region"
  | "public_url"
  | "http_port"
  | "tls"
  | "tls_cert"
  | "tls_key"
  | "trust_proxy"
  | "trusted_proxies"
  | "proxy_protocol"
>;

export interface EdgeOptions {
  config: EdgeConfig;
  gateway: InferenceDoor;
  /** Opens the port without accepting from it: edge processes do that. */
  parked?: boolean;
  clock: Clock;
  /** Host names of the platform itself, for a certificate of its own. */
  names: readonly string[];
  /** Serves the requests that other servers of the database send for themselves. */
  peer?: RequestListener | undefined;
  /** Serves the host names of the S3 door. */
  s3?: Management["s3"] | undefined;
  /** The server's own certificate, with TLS; absent = opens it, as configured. */
  certificate?: DefaultCertificate;
  /** Certificates of custom domains, by host; see TlsOptions. */
  contextOf?(host: string): SecureContext | undefined;
  /** See RedirectOptions. */
  challengeAnswer?(token: string): Promise<string | null>;
  /** See TlsOptions. */
  challengeCredential?(host: string): Promise<Credential | null>;
}

export function createEdge(options: EdgeOptions): Edge {
  const { config, gateway, peer, s3 } = options;
  let server: Server | null = null;
  let routes: RequestListener | null = null;
  let held: HeldPort | null = null;
  let parked: ParkedPort | null = null;
  let isOpen = false;
  let drainMs = DRAIN_MS;
  let retired: Promise<void> | null = null;
  /** Closed with the server: what belongs to TLS only. */
  let tls: TlsPort | null = null;
  return {
    serve(management, plain) {
      routes = management;
      const doors: Management = { request: management, plain, ...(peer && { peer }), ...(s3 && { s3 }) };
      if (isTls(config)) tls = createTlsPort(options, doors);
      server = tls?.server ?? createServer(SERVER_OPTIONS);
      attachGateway(server, gateway, doors);
      if (config.proxy_protocol) readProxyHeaders(server, proxiesOf(config));
      return server;
    },
    manage: (req, res) => routes?.(req, res),
    accept(socket) {
      // The connection is local and not encrypted, so on a TLS server it enters after the handshake.
      if (server && isOpen) server.emit(tls ? "secureConnection" : "connection", socket);
      else socket.destroy();
    },
    adopt(socket) {
      if (server) adopt(server, socket);
    },
    certificate: () => tls?.certificate ?? null,
    fd: () => parked?.fd ?? (server ? listeningFd(server) : -1),
    takePort() {
      if (server && !server.listening) parked?.giveTo(server);
    },
    hold(graceMs) {
      if (!server) throw new Error("the edge was never opened");
      drainMs = graceMs;
      const port = new HeldPort(parked !== null && !server.listening ? parked : server);
      gateway.giveUpIdle((socket) => port.hold(socket));
      held = port;
      return port;
    },
    async listen(taken) {
      if (!server) throw new Error("the edge was never opened");
      let port = config.port;
      // A held port already accepts in this process and goes on with it.
      if (options.parked && !(taken instanceof HeldPort)) {
        parked = await park(config, taken?.fd);
        port = parked.port;
      } else {
        const listening = opened(server, config.host, config.port);
        if (taken instanceof HeldPort) taken.giveTo(server);
        else if (taken) server.listen(taken);
        else server.listen(config.port, config.host);
        await listening;
        const address = server.address();
        if (address !== null && typeof address === "object") port = address.port;
      }
      isOpen = true;
      await tls?.listen(port);
      const host = config.host.includes(":") ? `[${config.host}]` : config.host;
      return `${tls ? "https" : "http"}://${host}:${port}`;
    },
    async retire() {
      const open = server;
      if (!open?.listening) return;
      gateway.retire();
      const closeIdle = open.closeIdleConnections;
      // Node closes idle connections with the server. A client may be about to use one.
      open.closeIdleConnections = () => {};
      retired = new Promise((resolve) => void open.close(() => resolve()));
      open.closeIdleConnections = closeIdle;
      await retired;
    },
    async stop(graceMs = drainMs) {
      const open = server;
      if (!open || (!open.listening && !held && !parked && !retired)) return;
      isOpen = false;
      if (!open.listening && !held) parked?.close();
      const closed = retired ?? new Promise<void>((resolve) => void open.close(() => resolve()));
      tls?.stop();
      // A connection whose last request was just answered would otherwise stay open for another one.
      const sweep = setInterval(() => {
        open.closeIdleConnections();
        tls?.closeIdle();
      }, SWEEP_MS);
      const timer = setTimeout(() => {
        open.closeAllConnections();
        tls?.closeAll();
      }, graceMs);
      try {
        await gateway.stop(graceMs);
        await closed;
      } finally {
        clearInterval(sweep);
        clearTimeout(timer);
        tls?.closeAll();
      }
    },
  };
}

interface TlsPort {
  server: Server;
  certificate: DefaultCertificate;
  /** Opens the port for plain HTTP, where there is one; `port` is that of HTTPS. */
  listen(port: number): Promise<void>;
  closeIdle(): void;
  closeAll(): void;
  stop(): void;
}

function createTlsPort(options: EdgeOptions, doors: Management): TlsPort {
  const { config, gateway, clock, names, contextOf, challengeAnswer, challengeCredential } = options;
  const certificate = options.certificate ?? openDefaultCertificate(config, names, clock);
  let httpsPort = config.port;
  const redirect = createRedirect({ port: () => httpsPort, ...(challengeAnswer && { challengeAnswer }) });
  /** For programs of this machine; listens nowhere itself. */
  const local = createServer(SERVER_OPTIONS);
  // Node keeps track of connections from this event on; without it, closeIdleConnections and headersTimeout do nothing.
  local.emit("listening");
  attachGateway(local, gateway, doors);
  const server = createTls({
    fallback: certificate.current(),
    contextOf,
    challengeCredential,
    plain: (socket) => void (isLocal(socket) ? local : redirect).emit("connection", socket),
  });
  certificate.follow((next) => server.setSecureContext(asNode(next)));
  const plainPort = createListener((socket) => {
    gateway.newcomers.add(socket);
    redirect.emit("connection", socket);
  });
  boundConnections(plainPort, gateway.connections);
  if (config.proxy_protocol) readProxyHeaders(plainPort, proxiesOf(config));
  return {
    server: asHttp(server),
    certificate,
    async listen(port) {
      httpsPort = publicPortOf(config) ?? port;
      if (config.http_port === undefined) return;
      const listening = opened(plainPort, config.host, config.http_port);
      plainPort.listen(config.http_port, config.host);
      await listening;
    },
    closeIdle() {
      for (const one of [local, redirect]) one.closeIdleConnections();
    },
    closeAll() {
      for (const one of [local, redirect]) one.closeAllConnections();
    },
    stop() {
      certificate.stop();
      plainPort.close();
      local.close();
    },
  };
}

const isLocal = ({ remoteAddress = "" }: Socket): boolean => /^(?:::ffff:)?127\.|^::1$/.test(remoteAddress);

/** The port of HTTPS in the public address, which may differ from the one that the server listens on. */
function publicPortOf({ public_url: url }: EdgeConfig): number | null {
  if (!url?.startsWith("https:")) return null;
  return Number(new URL(url).port || "443");
}

async function park({ host, port }: EdgeConfig, fd: number | undefined): Promise<ParkedPort> {
  try {
    return parkPort((await lookup(host)).address, port, fd);
  } catch (error) {
    throw explained(error as NodeJS.ErrnoException, host, port);
  }
}

function opened(server: NetServer, host: string, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", (error: NodeJS.ErrnoException) => reject(explained(error, host, port)));
  server.once("listening", resolve);
  return promise;
}

const explained = (error: NodeJS.ErrnoException, host: string, port: number): Error =>
  error.code === "EADDRINUSE"
    ? new PlatformError("conflict", `Port ${port} on ${host} is in use. Choose another with PORT or --port.`, {
        cause: error,
      })
    : error;
