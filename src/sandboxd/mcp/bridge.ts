/**
 * Serves an MCP server that only knows standard input and output over streamable HTTP, to clients of both protocols:
 *
 *   sandboxd mcp-stdio CMD ARG...      listens where HOST and PORT say
 *
 * The bridge listens once the command has answered `initialize`, so a broken command never gets requests.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { declaredVersion, failure, type HeaderOf, RPC, RpcError, type RpcId, STATELESS } from "../../lib/mcp/wire.ts";
import { sendJson } from "../http/send.ts";
import { type Accepts, BridgeSession } from "./bridge-session.ts";
import { SharedChild } from "./bridge-shared.ts";
import { isRequest, MESSAGE_BYTES_MAX, type Message } from "./stdio-child.ts";
import { PostAnswer } from "./stream.ts";

/** Most sessions at a time. Each is a process; for more, run another replica of the workload. */
const SESSIONS_MAX = 64;
const SESSION_IDLE_MS = 30 * 60_000;
const SWEEP_MS = 30_000;

export interface BridgeOptions {
  argv: readonly string[];
  host: string;
  port: number;
  /** Most sessions at a time. Default SESSIONS_MAX. */
  sessionsMax?: number;
}

export interface Bridge {
  server: Server;
  stop(): void;
}

export async function startMcpBridge(options: BridgeOptions): Promise<Bridge> {
  const { argv, host, port, sessionsMax = SESSIONS_MAX } = options;
  if (argv.length === 0) throw new Error("there is no command to start");
  const bridge = new BridgeFront(argv, sessionsMax);
  await bridge.shared.ready();
  const server = createServer((req, res) => {
    bridge.handle(req, res).catch((error: unknown) => {
      console.error(error);
      res.destroy();
    });
  });
  server.requestTimeout = 0;
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
  const sweep = setInterval(() => bridge.sweep(), SWEEP_MS);
  return {
    server,
    stop() {
      clearInterval(sweep);
      bridge.stop();
      server.close();
      server.closeAllConnections();
    },
  };
}

class BridgeFront {
  readonly shared: SharedChild;
  readonly #argv: readonly string[];
  readonly #sessionsMax: number;
  readonly #sessions = new Map<string, BridgeSession>();

  constructor(argv: readonly string[], sessionsMax: number) {
    this.#argv = argv;
    this.#sessionsMax = sessionsMax;
    this.shared = new SharedChild(argv);
  }

  async handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const [path] = (req.url ?? "/").split("?");
    if (path !== "/mcp") return refuse(res, 404, null, RPC.invalidRequest, "The server is at /mcp.");
    const sessionless = req.headers["mcp-protocol-version"] === STATELESS;
    if (req.method === "POST") return this.#post(req, res);
    if (sessionless || (req.method !== "GET" && req.method !== "DELETE")) {
      res.setHeader("Allow", sessionless ? "POST" : "POST, GET, DELETE");
      return refuse(res, 405, null, RPC.invalidRequest, "POST messages here.");
    }
    const session = this.#sessionOf(req, res, null);
    if (session === null) return;
    if (req.method === "DELETE") {
      session.close();
      res.writeHead(204).end();
      return;
    }
    const outcome = session.listen(res, acceptsOf(req));
    if (outcome === "taken") refuse(res, 409, null, RPC.invalidRequest, "Somebody listens to this session already.");
    else if (outcome === "forgotten")
      refuse(res, 400, null, RPC.invalidRequest, "What came after this event is no longer kept: ask again.");
  }

  sweep(): void {
    const before = Date.now() - SESSION_IDLE_MS;
    for (const session of this.#sessions.values()) if (session.idle && session.lastUsedMs < before) session.close();
  }

  stop(): void {
    for (const session of this.#sessions.values()) session.close();
    this.shared.stop();
  }

  async #post(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const message = await readMessage(req, res);
    if (message === null) return;
    try {
      const header = headerOf(req);
      const version = isRequest(message) ? declaredVersion(header, message) : header("mcp-protocol-version");
      if (version === STATELESS) this.#askShared(message, req, res);
      else this.#toSession(message, req, res);
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      sendJson(res, error.status, failure(message.id ?? null, error));
    }
  }

  #askShared(message: Message, req: IncomingMessage, res: ServerResponse): void {
    if (!isRequest(message)) return void res.writeHead(202).end();
    const answer = new PostAnswer(res, acceptsOf(req));
    res.once("close", () => this.shared.forget(answer));
    void this.shared.ask(message, answer, headerOf(req));
  }

  #toSession(message: Message, req: IncomingMessage, res: ServerResponse): void {
    const begins = message.method === "initialize" && req.headers["mcp-session-id"] === undefined;
    const session = begins ? this.#open(message, res) : this.#sessionOf(req, res, message.id ?? null);
    if (session === null) return;
    if (isRequest(message)) session.ask(message, res, acceptsOf(req));
    else {
      session.tell(message);
      res.writeHead(202).end();
    }
  }

  #open(message: Message, res: ServerResponse): BridgeSession | null {
    if (this.#sessions.size >= this.#sessionsMax) {
      const [oldest] = [...this.#sessions.values()]
        .filter(({ idle }) => idle)
        .sort((a, b) => a.lastUsedMs - b.lastUsedMs);
      if (oldest === undefined) {
        res.setHeader("Retry-After", "5");
        const why = `At most ${this.#sessionsMax} sessions are open at a time.`;
        refuse(res, 503, message.id ?? null, RPC.internalError, why);
        return null;
      }
      oldest.close();
    }
    const session = new BridgeSession(this.#argv, ({ id }) => this.#sessions.delete(id));
    this.#sessions.set(session.id, session);
    return session;
  }

  #sessionOf(req: IncomingMessage, res: ServerResponse, id: RpcId): BridgeSession | null {
    const given = req.headers["mcp-session-id"];
    const session = typeof given === "string" ? this.#sessions.get(given) : undefined;
    if (session !== undefined) return session;
    if (given === undefined) refuse(res, 400, id, RPC.invalidRequest, "Begin with initialize.");
    else refuse(res, 404, id, RPC.invalidRequest, "There is no such session: begin again with initialize.");
    return null;
  }
}

const headerOf =
  ({ headers }: IncomingMessage): HeaderOf =>
  (name) =>
    headers[name] as string | undefined;

const acceptsOf = ({ headers }: IncomingMessage): Accepts => ({
  takesStream: headers.accept?.includes("text/event-stream") ?? false,
  version: headers["mcp-protocol-version"] as string | undefined,
  lastEventId: headers["last-event-id"] as string | undefined,
});

async function readMessage(req: IncomingMessage, res: ServerResponse): Promise<Message | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > MESSAGE_BYTES_MAX) {
      res.setHeader("Connection", "close");
      refuse(res, 413, null, RPC.invalidRequest, `A message has at most ${MESSAGE_BYTES_MAX} bytes.`);
      return null;
    }
    chunks.push(chunk);
  }
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Message;
    refuse(res, 400, null, RPC.invalidRequest, "Send one JSON-RPC message.");
  } catch {
    refuse(res, 400, null, RPC.parseError, "The body is not JSON.");
  }
  return null;
}

function refuse(res: ServerResponse, status: number, id: RpcId, code: number, why: string): void {
  sendJson(res, status, failure(id, new RpcError(code, why)));
}
