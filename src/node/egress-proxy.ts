/**
 * The way out of a workload that has no network of its own: an HTTP proxy (CONNECT and plain requests) that the platform
 * serves on a socket of that workload. A name is resolved here, every address of it is judged, and the connection goes
 * to the address that was judged: a second, different answer of the name server changes nothing.
 */
import { lookup } from "node:dns/promises";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { connect, isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { classifyAddress } from "../lib/network/address-class.ts";
import { createServer, request, STATUS_CODES } from "../lib/network/node-http.ts";

export interface EgressOptions {
  /** Bytes that left and entered since the last report of the same connection. */
  onBytes?: (uid: string, sentBytes: number, receivedBytes: number) => void;
  /** A reason keeps the workload from that host. */
  blocked?: (uid: string, host: string, port: number) => string | null;
  /** The operator's exceptions from the rule that only public addresses are reached. */
  allowed?: (host: string, port: number, address: string) => boolean;
  resolve?: (host: string) => Promise<string[]>;
}

export interface EgressProxy {
  /** Serves a connection that the workload made. */
  serve(uid: string, socket: Socket): void;
  stop(): Promise<void>;
}

const CONNECT_WAIT_MS = 10_000;
/** A tunnel in which nothing moves. */
const IDLE_MAX_MS = 15 * 60_000;
const HEADERS_WAIT_MS = 30_000;
/** Long connections are counted while they last. */
const REPORT_EVERY_MS = 30_000;
/** One workload's connections at once; a crawler uses a few dozen. */
const CONNECTIONS_MAX = 256;
/** Mail from a stranger's machine is spam; everybody blocks it, and blames the machine. */
const PORTS_REFUSED = [25];
const HOST_BYTES_MAX = 253;

interface Refusal {
  status: number;
  /** For programs, in the header Proxy-Error. */
  code: string;
  message: string;
}

interface Target {
  host: string;
  port: number;
}

export function startEgressProxy(options: EgressOptions = {}): EgressProxy {
  const owners = new WeakMap<object, string>();
  const open = new Map<string, number>();
  const upstreams = new Set<Socket>();
  const server: Server = createServer({ requestTimeout: 0, headersTimeout: HEADERS_WAIT_MS });

  const dialOut = async (uid: string, target: Target): Promise<Socket | Refusal> => {
    if ((open.get(uid) ?? 0) >= CONNECTIONS_MAX) return refusal(429, "too_many_connections", "Too many connections.");
    const addresses = await judge(uid, target, options);
    if (!Array.isArray(addresses)) return addresses;
    const upstream = await connectAny(addresses, target);
    if (!("destroy" in upstream)) return upstream;
    open.set(uid, (open.get(uid) ?? 0) + 1);
    upstreams.add(upstream);
    const report = meter(upstream, (sent, received) => options.onBytes?.(uid, sent, received));
    upstream.once("close", () => {
      report();
      upstreams.delete(upstream);
      const left = (open.get(uid) ?? 1) - 1;
      if (left > 0) open.set(uid, left);
      else open.delete(uid);
    });
    upstream.setTimeout(IDLE_MAX_MS, () => upstream.destroy());
    return upstream;
  };

  server.on("connect", (incoming, client, head) => {
    const uid = owners.get(client) ?? "";
    const target = parseAuthority(incoming.url ?? "");
    tunnel(client, head, target ? dialOut(uid, target) : Promise.resolve(MALFORMED)).catch(() => client.destroy());
  });
  server.on("request", (incoming, response) => {
    const uid = owners.get(incoming.socket) ?? "";
    forward(incoming, response, (target) => dialOut(uid, target)).catch(() => response.destroy());
  });
  server.on("clientError", (_, socket) => {
    if (socket.writable) socket.end(rawAnswer(MALFORMED));
    else socket.destroy();
  });

  return {
    serve(uid, socket) {
      owners.set(socket, uid);
      server.emit("connection", socket);
    },
    async stop() {
      server.closeAllConnections();
      for (const upstream of upstreams) upstream.destroy();
    },
  };
}

async function tunnel(client: Duplex, head: Buffer, dialling: Promise<Socket | Refusal>): Promise<void> {
  client.on("error", () => client.destroy()); // it hung up; the other side follows below
  const upstream = await dialling;
  if (!("destroy" in upstream)) return void client.end(rawAnswer(upstream));
  if (client.destroyed) return void upstream.destroy();
  client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
  if (head.length > 0) upstream.write(head);
  upstream.once("error", () => client.destroy());
  upstream.once("close", () => client.destroy());
  client.once("close", () => upstream.destroy());
  client.pipe(upstream).pipe(client);
}

/** Headers that belong to one connection and are not passed on. */
const HOP_BY_HOP = new Set([
  "connection",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "upgrade",
]);

async function forward(
  incoming: IncomingMessage,
  response: ServerResponse,
  dialOut: (target: Target) => Promise<Socket | Refusal>,
): Promise<void> {
  const url = URL.canParse(incoming.url ?? "") ? new URL(incoming.url ?? "") : null;
  if (url?.protocol !== "http:") return answer(response, MALFORMED);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const upstream = await dialOut({ host, port: Number(url.port || 80) });
  if (!("destroy" in upstream)) return answer(response, upstream);
  const outgoing = request({
    createConnection: () => upstream,
    method: incoming.method ?? "GET",
    path: pathOf(incoming.url ?? "/"),
    headers: ["host", url.host, "connection", "close", ...passedOn(incoming.rawHeaders)],
  });
  response.once("close", () => upstream.destroy());
  outgoing.once("error", () => {
    if (response.headersSent) response.destroy();
    else answer(response, refusal(502, "connection_broken", "The connection broke."));
  });
  outgoing.once("response", (answered) => {
    response.writeHead(answered.statusCode ?? 502, answered.statusMessage ?? "", passedOn(answered.rawHeaders));
    answered.pipe(response);
    answered.once("error", () => response.destroy());
  });
  incoming.pipe(outgoing);
}

/** What follows the authority, byte for byte. */
const pathOf = (url: string): string => /^http:\/\/[^/?#]*([^#]*)/i.exec(url)?.[1]?.replace(/^(?!\/)/, "/") ?? "/";

function passedOn(rawHeaders: string[]): string[] {
  const kept: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? "";
    if (!HOP_BY_HOP.has(name.toLowerCase())) kept.push(name, rawHeaders[index + 1] ?? "");
  }
  return kept;
}

/** The addresses that may be dialled, or why none. One forbidden address forbids the name. */
async function judge(uid: string, { host, port }: Target, options: EgressOptions): Promise<string[] | Refusal> {
  const reason = options.blocked?.(uid, host, port);
  if (reason) return refusal(403, "firewall_blocked", reason);
  if (PORTS_REFUSED.includes(port)) return refusal(403, "port_forbidden", `Port ${port} is not reachable from here.`);
  let addresses: string[];
  try {
    addresses = isIP(host) ? [host] : await (options.resolve ?? resolveName)(host);
  } catch {
    return refusal(502, "name_not_resolved", `The name ${host} cannot be resolved.`);
  }
  const fine = (address: string): boolean =>
    (options.allowed?.(host, port, address) ?? false) || classifyAddress(address) === "public";
  if (addresses.length === 0) return refusal(502, "name_not_resolved", `The name ${host} has no address.`);
  if (!addresses.every(fine)) {
    return refusal(
      403,
      "destination_forbidden",
      `${host} is not a public address; only those are reachable from here.`,
    );
  }
  return addresses;
}

const resolveName = async (host: string): Promise<string[]> =>
  (await lookup(host, { all: true })).map(({ address }) => address);

async function connectAny(addresses: string[], { port }: Target): Promise<Socket | Refusal> {
  const deadline = Date.now() + CONNECT_WAIT_MS;
  for (const host of addresses) {
    const waitMs = deadline - Date.now();
    if (waitMs <= 0) break;
    const socket = await tryConnect(host, port, waitMs);
    if (socket) return socket;
  }
  return refusal(502, "connection_failed", "The host does not accept the connection.");
}

function tryConnect(host: string, port: number, waitMs: number): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, allowHalfOpen: true, timeout: waitMs });
    const settle = (result: Socket | null): void => {
      socket.removeAllListeners();
      socket.setTimeout(0);
      if (!result) socket.on("error", () => {}).destroy(); // the failure is told by the answer
      resolve(result);
    };
    socket.once("connect", () => settle(socket));
    socket.once("error", () => settle(null));
    socket.once("timeout", () => settle(null));
  });
}

/** Reports growth now and then; the returned function reports the rest. */
function meter(socket: Socket, report: (sentBytes: number, receivedBytes: number) => void): () => void {
  let [sent, received] = [0, 0];
  const tell = (): void => {
    const [nowSent, nowReceived] = [socket.bytesWritten, socket.bytesRead];
    if (nowSent > sent || nowReceived > received) report(nowSent - sent, nowReceived - received);
    [sent, received] = [nowSent, nowReceived];
  };
  const timer = setInterval(tell, REPORT_EVERY_MS).unref();
  return () => {
    clearInterval(timer);
    tell();
  };
}

function parseAuthority(text: string): Target | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:[\]/@]+)):(\d{1,5})$/i.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host && Buffer.byteLength(host) <= HOST_BYTES_MAX && port > 0 && port < 65_536 ? { host, port } : null;
}

const refusal = (status: number, code: string, message: string): Refusal => ({ status, code, message });
const MALFORMED = refusal(
  400,
  "malformed_request",
  "The proxy takes CONNECT host:port and requests for http:// addresses.",
);

function answer(response: ServerResponse, { status, code, message }: Refusal): void {
  response.writeHead(status, { "proxy-error": code, "content-type": "text/plain", connection: "close" });
  response.end(`${message}\n`);
}

function rawAnswer({ status, code, message }: Refusal): string {
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nProxy-Error: ${code}\r\nContent-Type: text/plain\r\n`;
  return `${head}Content-Length: ${Buffer.byteLength(message) + 1}\r\nConnection: close\r\n\r\n${message}\n`;
}
