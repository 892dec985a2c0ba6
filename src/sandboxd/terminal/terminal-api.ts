/** /terminal (a page for people) and /terminal/ws (the terminal itself). */

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Daemon } from "../daemon-context.ts";
import { ApiError, toApiError } from "../http/api-error.ts";
import type { Call } from "../http/call.ts";
import { requestPath } from "../http/call.ts";
import { acceptWebSocket, WebSocketConnection } from "../http/websocket.ts";
import { TERMINAL_PAGE } from "./page.ts";
import { attachTerminal, COLS_DEFAULT, ROWS_DEFAULT, side, type TerminalSession } from "./session.ts";

const SESSION_ID_CHARS_MAX = 128;

const disabled = (daemon: Daemon): boolean =>
  /^(1|true|yes|on)$/i.test(daemon.environment.variable("DISABLE_TERMINAL") ?? "");

export function getPage({ daemon, res }: Call): void {
  if (disabled(daemon)) throw new ApiError(404, "The terminal is switched off in this sandbox.");
  const body = Buffer.from(TERMINAL_PAGE);
  res.writeHead(200, { "Content-Type": "text/html; charset=utf-8", "Content-Length": body.byteLength });
  res.end(body);
}

export function refuseWithoutUpgrade(): void {
  throw new ApiError(426, "This address speaks WebSocket; open it with an upgrade request.");
}

export function acceptTerminal(daemon: Daemon, req: IncomingMessage, socket: Duplex, head: Buffer): void {
  if (disabled(daemon))
    return void socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  if (!acceptWebSocket(req, socket)) return;
  const query = new URLSearchParams(requestPath(req).split("?", 2)[1] ?? "");
  let session: TerminalSession | null = null;
  const client = new WebSocketConnection(socket, {
    onText: (text) => {
      if (session) handle(session, client, text);
    },
    onClose: () => session?.detach(client),
  });
  try {
    session = attachTerminal(
      daemon,
      {
        sessionId: (query.get("sessionId") || "default").slice(0, SESSION_ID_CHARS_MAX),
        cols: side(Number(query.get("cols")), COLS_DEFAULT),
        rows: side(Number(query.get("rows")), ROWS_DEFAULT),
        shell: query.get("shell") ?? "",
        workingDir: query.get("workingDir") ?? "",
        acknowledges: query.get("flow") === "ack",
      },
      client,
    );
    client.start(head);
  } catch (error) {
    tell(client, toApiError(error).message);
    client.close(1011);
  }
}

function handle(session: TerminalSession, client: WebSocketConnection, text: string): void {
  let message: { type?: unknown; data?: unknown; cols?: unknown; rows?: unknown; chars?: unknown };
  try {
    message = JSON.parse(text) ?? {};
  } catch {
    message = {};
  }
  if (message.type === "input" && typeof message.data === "string") session.input(message.data);
  else if (message.type === "resize") session.resize(Number(message.cols), Number(message.rows));
  else if (message.type === "ack") session.acknowledge(client, Number(message.chars));
  else tell(client, 'A message is {"type":"input","data"}, {"type":"resize","cols","rows"} or {"type":"ack","chars"}.');
}

const tell = (client: WebSocketConnection, data: string): void => client.send(JSON.stringify({ type: "error", data }));
