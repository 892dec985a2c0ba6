/**
 * The connections of this server to the other servers of its database: to hand on requests of clients, and to ask for
 * what only another server has.
 */
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Duplex, Readable, Writable } from "node:stream";
import { NodeUnavailable, PlatformError } from "../contract/errors.ts";
import { PEER_FIELD, SERVER_VALUE } from "../http/peer-field.ts";
import type { Running } from "../lib/lifecycle.ts";
import { Agent, request } from "../lib/network/node-http.ts";
import { dialPeer, type PeerAddress, type PeerIdentity } from "./peer-tls.ts";

/** The other servers, as the registry of nodes knows them. */
export interface PeerDirectory {
  isLive(node: string): boolean;
  /** Null when the node has no peer address. */
  addressOf(node: string): PeerAddress | null;
  /** The name that people gave the node. */
  nameOf(node: string): string;
}

export interface Peers extends Running {
  /** Opens a connection for requests of clients. Rejects with NodeUnavailable. */
  dial(node: string): Promise<Duplex>;
  /** Sends a request of this server's own. Rejects with NodeUnavailable, or with the refusal of the other server. */
  ask(node: string, question: Question): Promise<IncomingMessage>;
  /** Opens a conversation: both sides write for as long as they like. Rejects as `ask` does. */
  talk(node: string, path: string): Promise<Conversation>;
}

export interface Conversation {
  input: Readable;
  output: Writable;
}

export interface Question {
  /** Path of the question; see peer-questions.ts. */
  path: string;
  /** Sent as JSON. */
  body?: unknown;
  signal?: AbortSignal;
}

interface Sent {
  asking: ClientRequest;
  answer: Promise<IncomingMessage>;
}

/** Time limit of a connection. Peers are near: one that does not accept by then is away. */
const DIAL_MS = 3000;
/** Interval of pings to a node to which connections are open. */
const PING_MS = 5000;
/** Connections to a node that answers no ping for this long are closed: the node or the network is gone. */
const SILENCE_MAX_MS = 20_000;
/** Bytes of a refusal that are read. */
const REFUSAL_BYTES_MAX = 64 * 1024;

export interface PeersOptions extends PeerIdentity {
  directory: PeerDirectory;
  times?: { dialMs?: number; pingMs?: number; silenceMaxMs?: number };
}

export function createPeers({ directory, self, key, times = {} }: PeersOptions): Peers {
  const open = new Map<string, Set<Duplex>>();
  const pinged = new Set<string>();
  const stopped = new AbortController();

  async function connect(node: string): Promise<Duplex> {
    const address = directory.isLive(node) ? directory.addressOf(node) : null;
    if (address === null) throw new NodeUnavailable(directory.nameOf(node));
    const limit = AbortSignal.any([stopped.signal, AbortSignal.timeout(times.dialMs ?? DIAL_MS)]);
    const socket = await dialPeer({ self, key }, node, address, limit).catch((cause: unknown) => {
      throw new NodeUnavailable(directory.nameOf(node), cause);
    });
    const sockets = open.get(node) ?? new Set();
    open.set(node, sockets.add(socket));
    socket.once("close", () => {
      sockets.delete(socket);
      if (sockets.size === 0 && open.get(node) === sockets) open.delete(node);
    });
    return socket;
  }

  const agent = new Agent({ keepAlive: true, maxFreeSockets: 8 });
  agent.createConnection = ({ host }, done) => {
    connect(host ?? "").then(
      (socket) => done?.(null, socket),
      (error: Error) => done?.(error, undefined as unknown as Duplex),
    );
    return undefined;
  };

  function send(node: string, path: string, bytes: number | null, signal?: AbortSignal): Sent {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const length = bytes === null ? {} : { "content-length": bytes };
    const asking = request({
      ...{ agent, host: node, path },
      method: "POST",
      headers: { host: "peer", [PEER_FIELD]: SERVER_VALUE, ...length },
      signal: signal ? AbortSignal.any([signal, stopped.signal]) : stopped.signal,
    });
    asking.on("error", (error) => {
      reject(
        error instanceof NodeUnavailable || signal?.aborted
          ? error
          : new NodeUnavailable(directory.nameOf(node), error),
      );
    });
    asking.once("response", (response) => {
      if (response.statusCode === 200) resolve(response);
      else void refusalOf(response).then(reject, reject);
    });
    return { asking, answer: promise };
  }

  function ask(node: string, { path, body, signal }: Question): Promise<IncomingMessage> {
    const text = body === undefined ? "" : JSON.stringify(body);
    const { asking, answer } = send(node, path, Buffer.byteLength(text), signal);
    asking.end(text);
    return answer;
  }

  async function talk(node: string, path: string): Promise<Conversation> {
    const { asking, answer } = send(node, path, null);
    asking.flushHeaders();
    return { input: await answer, output: asking };
  }

  /** Only silence counts: a refused connection tells that the system of the other machine lives. */
  async function ping(node: string): Promise<void> {
    const silence = AbortSignal.timeout(times.silenceMaxMs ?? SILENCE_MAX_MS);
    try {
      (await ask(node, { path: "/ping", signal: silence })).resume();
    } catch {
      if (silence.aborted) for (const socket of open.get(node) ?? []) socket.destroy(new Error("the node is silent"));
    } finally {
      pinged.delete(node);
    }
  }

  const pinging = setInterval(() => {
    for (const node of open.keys()) {
      if (pinged.has(node)) continue;
      pinged.add(node);
      void ping(node);
    }
  }, times.pingMs ?? PING_MS);
  pinging.unref();

  return {
    dial: connect,
    ask,
    talk,
    async stop() {
      clearInterval(pinging);
      stopped.abort();
      agent.destroy();
      for (const sockets of open.values()) for (const socket of sockets) socket.destroy();
    },
  };
}

/** The error that the other server answered with. */
async function refusalOf(response: IncomingMessage): Promise<PlatformError> {
  const text = await textOf(response, REFUSAL_BYTES_MAX);
  const fallback = `another server answered ${response.statusCode}`;
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return new PlatformError("bad_gateway", typeof message === "string" ? message : fallback);
  } catch {
    return new PlatformError("bad_gateway", fallback);
  }
}

/** The body as text. Rejects when there is more of it than `bytesMax`. */
export async function textOf(body: Readable, bytesMax: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new PlatformError("payload_too_large", `More than ${bytesMax} bytes were sent.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
