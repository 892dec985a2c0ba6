/**
 * HTTP/2 for connections whose TLS handshake chose it. Requests reach the same listeners as those of HTTP/1.1, through
 * Node's compatible request and response objects; a WebSocket comes as an extended CONNECT (RFC 8441).
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Session, ServerOptions } from "node:http2";
import type { Socket } from "node:net";
import { isHost } from "../http1/host-field.ts";
import { HEAD_WAIT_MS } from "../newcomers.ts";
import { hostName } from "../route.ts";
import { guardAgainstFloods } from "./flood-guard.ts";

/** Idle timeout: as for HTTP/1.1. */
const IDLE_MS = 75_000;

/** Exported for tests, which send more. */
export const HTTP2_LIMITS = {
  /** Requests of one connection at a time. */
  streams: 128,
  /** Bytes of all header fields of a request, as for HTTP/1.1, and their number. */
  headerBytes: 64 * 1024,
  headerFields: 512,
  /**
   * Bytes of one request's body that the server keeps while nobody reads them. Node bounds them by stream alone and not
   * by connection, so that one connection can have `streams` times as many kept.
   */
  bodyBytes: 256 * 1024,
  /** Streams that a client may reset at once, and per second from then on. */
  resetBurst: 200,
  resetsPerSecond: 33,
} as const;

const OPTIONS: ServerOptions = {
  settings: {
    maxConcurrentStreams: HTTP2_LIMITS.streams,
    maxHeaderListSize: HTTP2_LIMITS.headerBytes,
    initialWindowSize: HTTP2_LIMITS.bodyBytes,
    enableConnectProtocol: true,
  },
  maxHeaderListPairs: HTTP2_LIMITS.headerFields,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  streamResetBurst: HTTP2_LIMITS.resetBurst,
  streamResetRate: HTTP2_LIMITS.resetsPerSecond,
};

export interface Http2Listeners {
  request(req: IncomingMessage, res: ServerResponse, options: { continueExpected: boolean }): void;
  webSocket(req: IncomingMessage, res: ServerResponse): void;
}

export interface Http2Door {
  /** Serves a connection after its TLS handshake. */
  accept(socket: Socket): void;
  /** Tells clients to send no further requests; connections close with their last answer. */
  close(): void;
  destroy(): void;
}

export function createHttp2Door(listeners: Http2Listeners): Http2Door {
  // Loaded only by a server with TLS: the module costs some megabytes.
  const server = process.getBuiltinModule("node:http2").createServer(OPTIONS);
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    guardAgainstFloods(session);
    closeWhenIdle(session);
  });
  const serve = (continueExpected: boolean) => (request: Http2ServerRequest, response: Http2ServerResponse) => {
    const pair = asHttp1(request, response);
    if (pair === null) refuse(response);
    else listeners.request(...pair, { continueExpected });
  };
  server.on("request", serve(false));
  server.on("checkContinue", serve(true));
  server.on("connect", (request: Http2ServerRequest, response: Http2ServerResponse) => {
    const pair = request.headers[":protocol"] === "websocket" ? asHttp1(request, response) : null;
    if (pair === null) refuse(response);
    else listeners.webSocket(...pair);
  });
  // A broken connection ends its session; nobody else has to know.
  server.on("sessionError", () => {});
  server.on("error", () => {});
  return {
    accept: (socket) => void server.emit("connection", socket),
    close() {
      for (const session of sessions) session.close();
    },
    destroy() {
      for (const session of sessions) session.destroy();
    },
  };
}

/** Ends a session without a first request, and later one without open requests. */
function closeWhenIdle(session: ServerHttp2Session): void {
  let open = 0;
  session.setTimeout(HEAD_WAIT_MS, () => {
    if (open === 0) session.close();
  });
  session.on("stream", (stream) => {
    open += 1;
    session.setTimeout(IDLE_MS);
    stream.once("close", () => {
      open -= 1;
    });
  });
}

/**
 * Node's objects for HTTP/2 have the members that listeners of HTTP/1.1 use; `Host` is added. Null for a request that
 * names no host, or two.
 */
function asHttp1(
  request: Http2ServerRequest,
  response: Http2ServerResponse,
): [req: IncomingMessage, res: ServerResponse] | null {
  const { headers } = request;
  const { ":authority": authority, host, "content-length": length } = headers;
  const named = authority ?? host;
  if (named === undefined || named === "" || !isHost(named)) return null;
  if (host !== undefined && hostName(host) !== hostName(named)) return null;
  if (length !== undefined && !Number.isSafeInteger(Number(length))) return null;
  headers.host = named;
  return [request as unknown as IncomingMessage, response as unknown as ServerResponse];
}

function refuse(response: Http2ServerResponse): void {
  const message = "The request is not valid: its method, its authority or its content-length cannot be read.";
  response.writeHead(400, { "content-type": "application/json" });
  response.end(JSON.stringify({ code: 400, error: "bad_request", message }));
}
