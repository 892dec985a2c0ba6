/**
 * The way out of a workload that has no network of its own: an HTTP proxy (CONNECT and plain requests) that the platform
 * serves on a socket of that workload, and that holds the workload's outbound rules.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { parseHost } from "../../lib/network/egress/host.ts";
import { createHandedServer } from "../../lib/network/handed-server.ts";
import type { Credential } from "../../lib/x509/certificate.ts";
import { type Admitted, Dialler, type DialOptions, type OpenConnection } from "./dialler.ts";
import { type FirstFlight, firstFlight } from "./first-flight.ts";
import { forward } from "./forward.ts";
import { HeldBytes } from "./held-bytes.ts";
import { type IdentityOf, NO_IDENTITIES } from "./identities.ts";
import { intercept } from "./intercept.ts";
import { join } from "./pace.ts";
import { openPassage, type Passage } from "./passage.ts";
import { HEAD_TOO_SLOW, isRefusal, MALFORMED, rawAnswer, refusedBy } from "./refusal.ts";
import { refuse, sinkOf } from "./sink.ts";
import { parseAuthority, parseHostHeader, parseHttpUrl } from "./target.ts";
import { ACCESS_DENIED, checkedTunnel } from "./tunnel.ts";
import { forwardUpgrade } from "./upgrade.ts";

export interface EgressOptions extends DialOptions {
  /** A certificate for a host that the workload trusts; absent = TLS is never read. */
  credentialOf?: (uid: string, host: string) => Promise<Credential>;
  /** A token of a workload for an audience; absent = requests of routes with such a token are refused. */
  identityOf?: IdentityOf;
  /** Authorities of servers behind routes; absent = those that Node knows. */
  authorities?: string;
  /** Time for the head of a request; absent = 30 s. */
  headersWaitMs?: number;
  /** Time for a body that a route may fill in; absent = 60 s. */
  bodyWaitMs?: number;
}

export interface EgressProxy {
  /** Serves a connection that the workload made. */
  serve(uid: string, socket: Socket): void;
  /** Serves a connection that the workload meant for this port of a host that only its first bytes name. */
  serveTransparent(uid: string, port: TransparentPort, socket: Socket): void;
  stop(): Promise<void>;
}

export type TransparentPort = 80 | 443;

/** A tunnel whose requests the platform reads. */
interface Way {
  uid: string;
  admitted: Admitted;
  ready: OpenConnection;
}

interface Carried {
  admitted: Admitted;
  connection: OpenConnection;
}

const HEADERS_WAIT_MS = 30_000;
/** Connections of one workload that are led here at once; connections through a door have its bound. */
const LED_MAX = 512;
const ESTABLISHED = "HTTP/1.1 200 Connection Established\r\n\r\n";

export function startEgressProxy(options: EgressOptions = {}): EgressProxy {
  const { headersWaitMs = HEADERS_WAIT_MS, identityOf = NO_IDENTITIES, authorities } = options;
  const dialler = new Dialler(options);
  const bodies = new HeldBytes(options.bodyWaitMs);
  const owners = new WeakMap<object, string>();
  const passages = new WeakMap<object, Passage>();
  const led = new WeakSet<object>();
  /** Connections that were led here, by workload. */
  const ledBy = new Map<string, number>();
  const settings = { requestTimeout: 0, headersTimeout: headersWaitMs };
  /** Takes CONNECT and requests with whole addresses. */
  const door: Server = createHandedServer(settings);
  /** Takes requests inside a tunnel. */
  const inner: Server = createHandedServer({ ...settings, shouldUpgradeCallback: keepsRequestsReadable });

  async function tunnel(uid: string, incoming: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    client.on("error", () => client.destroy()); // the client hung up; the other side follows below
    const target = parseAuthority(incoming.url ?? "");
    const admitted = target ? await dialler.admit(uid, target) : MALFORMED;
    if (isRefusal(admitted)) return void client.end(rawAnswer(admitted));
    const connection = await dialler.dial(uid, admitted);
    if (isRefusal(connection)) return void client.end(rawAnswer(connection));
    const { socket: upstream } = connection;
    if (client.destroyed) return void upstream.destroy();
    client.write(ESTABLISHED);
    await carry(uid, client, head, { admitted, connection });
  }

  async function carry(uid: string, client: Duplex, head: Buffer, { admitted, connection }: Carried): Promise<void> {
    const { socket: upstream } = connection;
    const { policy, routes } = admitted.rules;
    const reads = options.credentialOf !== undefined && routes.reads(admitted.target.host);
    if (policy.open && !reads) {
      if (head.length > 0) upstream.write(head);
      return join(client, upstream, connection.paces);
    }
    await checkedTunnel(client, head, connection, {
      policy,
      reads,
      onRequests: (flight) => {
        takeRequests(client, flight, { uid, admitted, ready: connection }).catch(() => client.destroy());
      },
      onRefused: (rule) => dialler.tell(uid, admitted.target, refusedBy(admitted.target.host.text, rule)),
    });
  }

  async function transparent(uid: string, port: TransparentPort, client: Socket): Promise<void> {
    client.on("error", () => client.destroy()); // the client hung up; the other side follows below
    const giveUp = (): void => void client.destroy();
    const timer = setTimeout(giveUp, headersWaitMs).unref();
    const flight = await firstFlight(client, Buffer.alloc(0)).finally(() => clearTimeout(timer));
    if (flight.protocol === "http" && port === 80) {
      client.unshift(flight.bytes);
      owners.set(client, uid);
      led.add(client);
      door.emit("connection", client);
      return void client.resume();
    }
    const host = flight.protocol === "tls" ? parseHost(flight.hello.serverName ?? "") : null;
    const target = host && !host.address ? { host, port } : null;
    const admitted = target && (await dialler.admit(uid, target));
    if (!admitted || isRefusal(admitted)) return void client.end(flight.protocol === "tls" ? ACCESS_DENIED : "");
    admitted.countedThere = true;
    const connection = await dialler.dial(uid, admitted);
    if (isRefusal(connection)) return void client.destroy();
    if (client.destroyed) return void connection.socket.destroy();
    await carry(uid, client, flight.bytes, { admitted, connection });
  }

  async function takeRequests(client: Duplex, { protocol, bytes }: FirstFlight, way: Way): Promise<void> {
    const { uid, admitted } = way;
    const secure = protocol === "tls";
    const passage = openPassage(dialler, { ...way, secure, keepAlive: true, bodies, identityOf, authorities });
    client.once("close", () => passage.close());
    const credential = secure ? await options.credentialOf?.(uid, admitted.target.host.text) : undefined;
    client.unshift(bytes);
    const onHttp1 = (stream: Duplex): void => {
      passages.set(stream, passage);
      inner.emit("connection", stream);
      stream.resume();
    };
    if (!secure) return onHttp1(client);
    if (!credential) return void client.destroy();
    intercept(client, {
      credential,
      onHttp1,
      onRequest: (incoming, sink) => {
        passage.prefersHttp2 = true;
        forward(dialler, passage, incoming.url ?? "/", incoming, sink).catch(() => sink.body.destroy());
      },
    });
  }

  async function plainRequest(uid: string, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "GET" } = incoming;
    // A connection that was led here has requests for paths, and their host in a header.
    const isLed = led.has(incoming.socket) && incoming.url?.startsWith("/") === true;
    const url = isLed
      ? `http://${parseHostHeader(incoming.headers.host ?? "")?.text ?? ""}${incoming.url}`
      : (incoming.url ?? "");
    const target = parseHttpUrl(url);
    const path = pathOf(url);
    const admitted = target ? await dialler.admit(uid, target, { method, path }) : MALFORMED;
    const sink = sinkOf(response);
    if (isRefusal(admitted)) return refuse(sink, admitted);
    // The address of the request decides, whatever its Host header says.
    incoming.headers.host = new URL(url).host;
    admitted.countedThere = isLed;
    const passage = openPassage(dialler, { uid, admitted, secure: false, keepAlive: false, bodies, identityOf });
    await forward(dialler, passage, path, incoming, sink);
  }

  const onBadRequest = (error: Error, socket: Duplex): void => {
    if (socket.writable) socket.end(rawAnswer(isTooSlow(error) ? HEAD_TOO_SLOW : MALFORMED));
    else socket.destroy();
  };

  door.on("connect", (incoming, client, head) => {
    tunnel(owners.get(client) ?? "", incoming, client, head).catch(() => client.destroy());
  });
  door.on("request", (incoming, response) => {
    plainRequest(owners.get(incoming.socket) ?? "", incoming, response).catch(() => response.destroy());
  });
  inner.on("request", (incoming, response) => {
    const passage = passages.get(incoming.socket);
    if (!passage) return void response.destroy();
    forward(dialler, passage, incoming.url ?? "/", incoming, sinkOf(response)).catch(() => response.destroy());
  });
  inner.on("upgrade", (incoming, client, head) => {
    const passage = passages.get(incoming.socket);
    if (!passage) return void client.destroy();
    forwardUpgrade(dialler, passage, incoming, client, head).catch(() => client.destroy());
  });
  for (const server of [door, inner]) server.on("clientError", onBadRequest);

  return {
    serve(uid, socket) {
      owners.set(socket, uid);
      door.emit("connection", socket);
    },
    serveTransparent(uid, port, socket) {
      const now = ledBy.get(uid) ?? 0;
      if (now >= LED_MAX) return void socket.destroy();
      ledBy.set(uid, now + 1);
      socket.once("close", () => {
        const left = (ledBy.get(uid) ?? 1) - 1;
        if (left > 0) ledBy.set(uid, left);
        else ledBy.delete(uid);
      });
      transparent(uid, port, socket).catch(() => socket.destroy());
    },
    async stop() {
      for (const server of [door, inner]) {
        server.closeAllConnections();
        server.close();
      }
      dialler.stop();
    },
  };
}

const isTooSlow = (error: Error): boolean => "code" in error && error.code === "ERR_HTTP_REQUEST_TIMEOUT";

/** Protocols whose requests nobody would judge. Such an offer is ignored, as servers may do. */
const HIDING = /(?:^|[,\s])(?:h2c?|http|tls|spdy)(?:[/,\s]|$)/i;

const keepsRequestsReadable = ({ headers }: IncomingMessage): boolean => !HIDING.test(headers.upgrade ?? "");

/** What follows the authority, byte for byte. */
const pathOf = (url: string): string => /^http:\/\/[^/?#]*([^#]*)/i.exec(url)?.[1]?.replace(/^(?!\/)/, "/") ?? "/";
