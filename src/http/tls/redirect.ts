/** Answers plain HTTP where HTTPS is served: with the same address and https. Nothing of a request is acted upon. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "../../lib/network/node-http.ts";
import { SERVER_OPTIONS } from "../attach.ts";
import { isHost } from "../http1/host-field.ts";
import { HEAD_WAIT_MS } from "../newcomers.ts";
import { hostName } from "../route.ts";

const CHALLENGE = "/.well-known/acme-challenge/";

export interface RedirectOptions {
  /** Port of HTTPS as clients know it. */
  port(): number;
  /** The answer to a challenge of a certificate authority; null when nobody waits for one. */
  challengeAnswer?(token: string): Promise<string | null>;
  /** How long a connection may last in all. */
  lifeMs?: number;
}

const LIFE_MS = 2 * HEAD_WAIT_MS;

export function createRedirect({ port, challengeAnswer, lifeMs = LIFE_MS }: RedirectOptions): Server {
  const server = createServer({ ...SERVER_OPTIONS, keepAliveTimeout: 5000 });
  // Node checks `headersTimeout` only in a server that listens itself.
  server.on("connection", (socket) => {
    const timer = setTimeout(() => socket.destroy(), lifeMs).unref();
    socket.once("close", () => clearTimeout(timer));
  });
  server.on("request", (req: IncomingMessage, res: ServerResponse) => {
    const token = req.url?.startsWith(CHALLENGE) ? req.url.slice(CHALLENGE.length) : null;
    if (token === null || !challengeAnswer) return redirect(req, res, port());
    challengeAnswer(token).then(
      (answer) => (answer === null ? redirect(req, res, port()) : res.end(answer)),
      () => res.writeHead(503).end(),
    );
  });
  server.on("clientError", (_error, socket) => socket.destroy());
  return server;
}

function redirect({ url = "/", headers }: IncomingMessage, res: ServerResponse, port: number): void {
  const host = headers.host !== undefined && isHost(headers.host) ? hostName(headers.host) : "";
  res.setHeader("connection", "close");
  if (host === "" || !url.startsWith("/")) return void res.writeHead(400).end("This server speaks HTTPS.\n");
  const location = `https://${host}${port === 443 ? "" : `:${port}`}${url}`;
  // 308 keeps the method and the body.
  res.writeHead(308, { location, "content-type": "text/plain" }).end("This server speaks HTTPS.\n");
}
