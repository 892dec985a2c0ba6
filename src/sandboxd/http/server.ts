/**
 * HTTP in front of the handlers: routing on raw paths, the headers every answer carries, and errors as `{ error }`.
 * node:http rather than Bun.serve, because the latter resolves `..` in a path before anybody can see it.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Daemon } from "../daemon-context.ts";
import { ELSEWHERE, FILE_PATHS, ROUTES } from "../routes.ts";
import { ApiError } from "./api-error.ts";
import type { Call, Handler } from "./call.ts";
import { requestPath } from "./call.ts";
import { fail } from "./fail.ts";
import { boundHalfOpen } from "./half-open.ts";
import { sendJson } from "./send.ts";

/**
 * Some clients join an endpoint and an absolute path with one encoded slash, which is the separator and the path's own
 * first slash at once.
 */
const ENCODED_SEPARATOR =
  /^(\/filesystem(?:\/tree|-find|-search|-content-search|-move|-multipart\/initiate)?|\/watch\/filesystem)%2f/i;

const METHODS = "GET, POST, PUT, DELETE, HEAD, OPTIONS";

const COMMON_HEADERS: Record<string, string> = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Allow-Methods": METHODS,
  "Access-Control-Allow-Headers": "Content-Type, Authorization",
  "Cache-Control": "no-cache, no-store, must-revalidate",
  Pragma: "no-cache",
  Expires: "0",
  "X-Content-Type-Options": "nosniff",
};

const WELCOME = {
  message: "Welcome to your sandbox",
  documentation: "/health, /process, /filesystem/{path}, /terminal and /mcp are good places to begin.",
  description: "This API runs inside the sandbox: processes, files, terminals, ports and tools for agents.",
};

/**
 * Idle timeout of a connection. Long, because the only client is the platform, which closes its own idle connections.
 */
const IDLE_CONNECTION_MS = 10 * 60 * 1000;

/** `callTool` is set only in the helper of user-files, which serves only that call and file requests. */
export function createApiServer(daemon: Daemon, callTool?: Handler): Server {
  const server = createServer((req, res) => {
    res.once("close", daemon.trim.begin());
    const started = performance.now();
    for (const [name, value] of Object.entries(COMMON_HEADERS)) res.setHeader(name, value);
    if (daemon.environment.variable("ENABLE_PROCESSING_TIME")) stampTime(res, started);
    dispatch(daemon, req, res, callTool).catch((error: unknown) => fail(res, error));
  });
  server.on("upgrade", (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    if (!/^\/terminal\/ws(\?|$)/.test(requestPath(req))) {
      return void socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    }
    import("../terminal/terminal-api.ts").then(
      ({ acceptTerminal }) => acceptTerminal(daemon, req, socket, head),
      () => socket.destroy(),
    );
  });
  boundHalfOpen(server);
  server.timeout = 0;
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  server.keepAliveTimeout = IDLE_CONNECTION_MS;
  return server;
}

async function dispatch(
  daemon: Daemon,
  req: IncomingMessage,
  res: ServerResponse,
  callTool: Handler | undefined,
): Promise<void> {
  const target = requestPath(req);
  const mark = target.indexOf("?");
  const path = (mark === -1 ? target : target.slice(0, mark)).replace(ENCODED_SEPARATOR, "$1//");
  const method = req.method ?? "GET";
  if (method === "OPTIONS") return void res.writeHead(204).end();
  if (path === "/" || path === "") return sendJson(res, 200, WELCOME);
  const isTool = callTool !== undefined && path === "/tool";
  const [load, params] = isTool ? [async () => callTool, []] : match(path, method, res);
  if (method === "HEAD") return void res.writeHead(200).end();
  if (FILE_PATHS.test(path)) {
    const user = daemon.userFiles ? daemon.environment.filesUser : undefined;
    if (user) return (await daemon.userFiles?.())?.forward(user, req, res);
  } else if (callTool !== undefined && !isTool) throw new ApiError(404, "The helper for files has only files.");
  const leaving = new AbortController();
  res.once("close", () => leaving.abort());
  const query = new URLSearchParams(mark === -1 ? "" : target.slice(mark + 1));
  const handler = await load();
  const call: Call = { req, res, path, query, params, daemon, signal: leaving.signal };
  await handler(call);
}

function match(path: string, method: string, res: ServerResponse): [() => Promise<Handler>, string[]] {
  for (const { pattern, methods } of ROUTES) {
    const found = pattern.exec(path);
    if (!found) continue;
    const load = methods[method === "HEAD" ? (Object.keys(methods)[0] ?? "GET") : method];
    if (load) return [load, found.slice(1).map((group: string | undefined) => group ?? "")];
    const allowed = Object.keys(methods).join(", ");
    res.setHeader("Allow", allowed);
    throw new ApiError(405, `${method} is not possible here; ${allowed} is.`);
  }
  const elsewhere = ELSEWHERE.find(({ pattern }) => pattern.test(path));
  throw new ApiError(404, elsewhere?.sentence ?? `The sandbox API has nothing at ${path}.`);
}

/** Sets Server-Timing when the headers are written, which is when the duration is known. */
function stampTime(res: ServerResponse, started: number): void {
  const writeHead = res.writeHead.bind(res);
  res.writeHead = ((...args: Parameters<typeof writeHead>) => {
    res.setHeader("Server-Timing", `sandbox;dur=${(performance.now() - started).toFixed(2)}`);
    return writeHead(...args);
  }) as typeof res.writeHead;
}
