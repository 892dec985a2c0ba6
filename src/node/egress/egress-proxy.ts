/**
 * The way out of a workload that has no network of its own: an HTTP proxy (CONNECT and plain requests) that the platform
 * serves on a socket of that workload, and that holds the workload's outbound rules.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { Agent, createServer } from "../../lib/network/node-http.ts";
import { type Admitted, Dialler, type DialOptions } from "./dialler.ts";
import { forward, forwardUpgrade, join, type Passage } from "./forward.ts";
import { answer, isRefusal, MALFORMED, RefusalError, rawAnswer, refusedBy } from "./refusal.ts";
import { parseAuthority, parseHttpUrl } from "./target.ts";
import { checkedTunnel } from "./tunnel.ts";

export type EgressOptions = DialOptions;

export interface EgressProxy {
  /** Serves a connection that the workload made. */
  serve(uid: string, socket: Socket): void;
  stop(): Promise<void>;
}

const HEADERS_WAIT_MS = 30_000;
const ESTABLISHED = "HTTP/1.1 200 Connection Established\r\n\r\n";

export function startEgressProxy(options: EgressOptions = {}): EgressProxy {
  const dialler = new Dialler(options);
  const owners = new WeakMap<object, string>();
  const passages = new WeakMap<object, Passage>();
  const settings = { requestTimeout: 0, headersTimeout: HEADERS_WAIT_MS };
  /** Takes CONNECT and requests with whole addresses. */
  const door: Server = createServer(settings);
  /** Takes requests inside a tunnel. */
  const inner: Server = createServer(settings);

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
    const { policy } = admitted.rules;
    if (policy.open) {
      if (head.length > 0) upstream.write(head);
      return join(client, upstream);
    }
    await checkedTunnel(client, head, connection, {
      policy,
      onHttp({ bytes }) {
        client.unshift(bytes);
        passages.set(client, passageOf(dialler, uid, admitted));
        inner.emit("connection", client);
        client.resume();
      },
      onRefused: (rule) => dialler.tell(uid, admitted.target, refusedBy(admitted.target.host.text, rule)),
    });
  }

  async function plainRequest(uid: string, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = "", method = "GET" } = incoming;
    const target = parseHttpUrl(url);
    const path = pathOf(url);
    const admitted = target ? await dialler.admit(uid, target, { method, path }) : MALFORMED;
    if (isRefusal(admitted)) return answer(response, admitted);
    // The address of the request decides, whatever its Host header says.
    incoming.headers.host = new URL(url).host;
    await forward(dialler, passageOf(dialler, uid, admitted, false), path, incoming, response);
  }

  const onBadRequest = (_: Error, socket: Duplex): void => {
    if (socket.writable) socket.end(rawAnswer(MALFORMED));
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
    forward(dialler, passage, incoming.url ?? "/", incoming, response).catch(() => response.destroy());
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
    async stop() {
      for (const server of [door, inner]) server.closeAllConnections();
      dialler.stop();
    },
  };
}

function passageOf(dialler: Dialler, uid: string, admitted: Admitted, keepAlive = true): Passage {
  const agent = new Agent({ keepAlive });
  agent.createConnection = (_, onCreate = () => {}) => {
    dialler.dial(uid, admitted).then(
      (dialled) => {
        if (isRefusal(dialled)) return onCreate(new RefusalError(dialled), NO_STREAM);
        dialled.checked = true;
        onCreate(null, dialled.socket);
      },
      (error: Error) => onCreate(error, NO_STREAM),
    );
    return undefined;
  };
  return { uid, admitted, secure: false, agent };
}

/** Node's types ask for a stream beside an error; Node does not look at it. */
const NO_STREAM = new Duplex();

/** What follows the authority, byte for byte. */
const pathOf = (url: string): string => /^http:\/\/[^/?#]*([^#]*)/i.exec(url)?.[1]?.replace(/^(?!\/)/, "/") ?? "/";
