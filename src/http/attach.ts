/**
 * Puts the gateway and the management API on one port: the raw address of a request decides which one gets it. Works
 * for Node's HTTP/1.1 servers, with or without TLS; connections that chose HTTP/2 are served beside them.
 */
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type TLSSocket, Server as TlsServer } from "node:tls";
import { boundConnections, type Connections } from "./connections.ts";
import { namesOneHost } from "./http1/host-field.ts";
import type { PlainHead } from "./http1/request-head.ts";
import { createHttp2Door, type Http2Door } from "./http2/http2-door.ts";
import type { LaneRequest } from "./lane-request.ts";
import { HEAD_WAIT_MS, type Newcomers } from "./newcomers.ts";
import { isPeer, takePeerRequest } from "./peer-field.ts";
import type { Route } from "./route.ts";

/** The gateway as the port sees it. */
export interface InferenceDoor {
  /** Where a request belongs; `management` requests are not served by the gateway. */
  route(req: IncomingMessage): Route;
  request(req: IncomingMessage, res: ServerResponse, route: Route, options?: { continueExpected?: boolean }): void;
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer, route: Route): void;
  /** Serves a WebSocket that came over HTTP/2. */
  webSocket(req: IncomingMessage, res: ServerResponse, route: Route): void;
  /**
   * Serves plain requests of a new connection itself, and management requests through `management` as far as it takes
   * them. `handOver` gets the connection, with nothing consumed, when another kind of request comes.
   */
  connection(socket: Socket, handOver: (socket: Socket) => void, management?: PlainManagement): void;
  closeIdleConnections(): void;
  /** Passes on connections without a request in flight, unread, for another server. TLS and handed-over ones stay. */
  /** From now on each connection ends with its next answer. */
  retire(): void;
  giveUpIdle(take: (socket: Socket) => void): void;
  /** The server's connections that have not sent a whole request yet. */
  readonly newcomers: Newcomers;
  /** All connections of the server's clients. */
  readonly connections: Connections;
  /** Answers bytes that Node's server could not parse as a request. */
  clientError(error: NodeJS.ErrnoException, socket: Duplex): void;
  /** Refuses new requests, lets running ones finish for `graceMs`, then ends them. */
  stop(graceMs?: number): Promise<void>;
}

/** The function that serves a management request with this head; null leaves the request to Node's server. */
export type PlainManagement = (head: PlainHead) => ((request: LaneRequest) => Promise<void>) | null;

export interface Management {
  request(req: IncomingMessage, res: ServerResponse): void;
  /** Serves plain requests without Node's objects; null leaves a request to Node. */
  plain?: PlainManagement;
  /** Serves requests to the host names of the S3 door; absent: another process serves them. */
  s3?(req: IncomingMessage, res: ServerResponse, continueExpected: boolean): void;
  /** Serves requests that another server of the database sends for itself; absent: there are no other servers. */
  peer?(req: IncomingMessage, res: ServerResponse): void;
  /** Absent: management has no upgrades. */
  upgrade?(req: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/** Required options of the server, so that the gateway's own limits apply. */
export const SERVER_OPTIONS = {
  /** Bytes of request line and headers. Node's default of 16 KB is too small for long cookies and tokens. */
  maxHeaderSize: 64 * 1024,
  /** 0 = no limit: a body may take as long as the request; the gateway enforces idle and total timeouts. */
  requestTimeout: 0,
  /** Time limit for the headers, against clients that send them slowly on purpose. */
  headersTimeout: HEAD_WAIT_MS,
  /** Interval at which `headersTimeout` is checked. */
  connectionsCheckingInterval: 5_000,
  /** Idle timeout: longer than the 60 s of load balancers, so that the balancer closes first. */
  keepAliveTimeout: 75_000,
  insecureHTTPParser: false,
  /** Some clients offer h2c with their first request; the offer is ignored. */
  shouldUpgradeCallback: (req: IncomingMessage): boolean => !/^h2c$/i.test(req.headers.upgrade ?? ""),
} satisfies ServerOptions;

/** `fastLane: false` leaves every connection to Node's own HTTP server. */
export function attachGateway(
  server: Server,
  gateway: InferenceDoor,
  management: Management,
  options: { fastLane?: boolean } = {},
): void {
  if (options.fastLane ?? true) putFastLaneInFront(server, gateway, management.plain);
  if (server instanceof TlsServer) putHttp2InFront(server, http2DoorOf(gateway, management));
  // Beyond its default number Node drops headers silently; the size limit already bounds them.
  server.maxHeadersCount = 0;
  server.on("connection", (socket: Duplex) => {
    if (socket instanceof Socket) gateway.newcomers.add(socket);
  });
  server.on("request", (req, res) => {
    gateway.newcomers.arrived(req.socket);
    if (isUnreadable(req)) return refuse(res);
    if (isPeer(req.socket)) {
      const request = takePeerRequest(req);
      if (request === null) return refuse(res);
      if (request.from === "server") return management.peer ? management.peer(req, res) : refuse(res);
    }
    direct(gateway, management, req, res, false);
  });
  server.on("checkContinue", (req, res) => {
    gateway.newcomers.arrived(req.socket);
    if (isUnreadable(req) || !isClients(req)) return refuse(res);
    direct(gateway, management, req, res, true);
  });
  server.on("upgrade", (req, socket, head) => {
    gateway.newcomers.arrived(req.socket);
    if (isUnreadable(req) || !isClients(req)) return void gateway.clientError(new Error("unreadable framing"), socket);
    const route = gateway.route(req);
    if (route.to !== "management") gateway.upgrade(req, socket, head, route);
    else if (management.upgrade) management.upgrade(req, socket, head);
    else socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  });
  server.on("clientError", (error, socket) => gateway.clientError(error, socket));
  boundConnections(server, gateway.connections);
}

/** Gives a request to the room that its address belongs to. `continueExpected`: the client waits with the body. */
function direct(
  gateway: InferenceDoor,
  management: Management,
  req: IncomingMessage,
  res: ServerResponse,
  continueExpected: boolean,
): void {
  const route = gateway.route(req);
  if (route.to === "s3" && management.s3) management.s3(req, res, continueExpected);
  else if (route.to !== "management") gateway.request(req, res, route, { continueExpected });
  else {
    if (continueExpected) res.writeContinue();
    management.request(req, res);
  }
}

/**
 * Requests that Node's parser accepts but other servers read differently: HTTP/0.9 (no headers), a Content-Length above
 * the safe integer range, more than one host.
 */
function isUnreadable({ httpVersionMajor, headers, rawHeaders, url }: IncomingMessage): boolean {
  const length = headers["content-length"];
  if (httpVersionMajor < 1 || (length !== undefined && !Number.isSafeInteger(Number(length)))) return true;
  return !namesOneHost(url ?? "/", rawHeaders);
}

/** False on a peer connection when the request says nothing of a client, or is the other server's own. */
const isClients = (req: IncomingMessage): boolean => !isPeer(req.socket) || takePeerRequest(req)?.from === "client";

/** The following bytes could be a body or another request, so the connection is closed. */
function refuse(res: ServerResponse): void {
  const message = "The request is not valid HTTP/1.1: its version, its Host or its Content-Length cannot be read.";
  const body = JSON.stringify({ code: 400, error: "bad_request", message });
  res.writeHead(400, { "content-type": "application/json", "content-length": body.length, connection: "close" });
  res.end(body);
}

function http2DoorOf(gateway: InferenceDoor, management: Management): Http2Door {
  return createHttp2Door({
    request(req, res, { continueExpected }) {
      gateway.newcomers.arrived(req.socket);
      direct(gateway, management, req, res, continueExpected);
    },
    webSocket(req, res) {
      gateway.newcomers.arrived(req.socket);
      const route = gateway.route(req);
      if (route.to !== "management") return gateway.webSocket(req, res, route);
      res.writeHead(404);
      res.end();
    },
  });
}

function putHttp2InFront(server: Server & TlsServer, door: Http2Door): void {
  const listeners = server.listeners("secureConnection") as ((socket: TLSSocket) => void)[];
  server.removeAllListeners("secureConnection");
  server.on("secureConnection", (socket) => {
    if (socket.alpnProtocol === "h2") door.accept(socket);
    else for (const listener of listeners) listener.call(server, socket);
  });
  const close = server.close.bind(server);
  server.close = (done) => {
    door.close();
    return close(done);
  };
  const closeAll = server.closeAllConnections.bind(server);
  server.closeAllConnections = () => {
    door.destroy();
    closeAll();
  };
}

/** Node's own connection listener is kept for connections that the lane hands over. */
function putFastLaneInFront(server: Server, gateway: InferenceDoor, plain: PlainManagement | undefined): void {
  const event = server instanceof TlsServer ? "secureConnection" : "connection";
  const listeners = server.listeners(event) as ((socket: Socket) => void)[];
  server.removeAllListeners(event);
  const handOver = (socket: Socket): void => {
    for (const listener of listeners) listener.call(server, socket);
  };
  server.on(event, (socket: Socket) => {
    // Other streams may be fed to the server too, such as tunnels from inside a workload.
    if (socket instanceof Socket) gateway.connection(socket, handOver, plain);
    else handOver(socket);
  });
  // server.close() calls this method: idle connections of the lane would keep the server open.
  const closeIdle = server.closeIdleConnections.bind(server);
  server.closeIdleConnections = () => {
    closeIdle();
    gateway.closeIdleConnections();
  };
}
