/** The connections behind one client connection: made when a request needs one, kept for the next request. */
import type { Agent } from "node:http";
import type { ClientHttp2Session } from "node:http2";
import { Duplex } from "node:stream";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { Agent as HttpAgent } from "../../lib/network/node-http.ts";
import type { Admitted, Dialler, OpenConnection } from "./dialler.ts";
import type { HeldBytes } from "./held-bytes.ts";
import type { IdentityOf } from "./identities.ts";
import { type Outgoing, type OutgoingEvents, type OutgoingHead, sendHttp1 } from "./outgoing.ts";
import { isRefusal, RefusalError, refusal } from "./refusal.ts";
import type { Target } from "./target.ts";
import { openSession, sendHttp2 } from "./upstream-http2.ts";

/** The way of a client's requests to one destination. */
export interface Passage {
  uid: string;
  admitted: Admitted;
  /** The requests leave over TLS. */
  secure: boolean;
  /** Makes the connections of HTTP/1.1 to the destination. */
  agent: Agent;
  /** Counts the bodies that are held until they are whole. */
  bodies: HeldBytes;
  /** Makes the tokens that routes fill in. */
  identityOf: IdentityOf;
  /** The client speaks HTTP/2, so its requests go on in HTTP/2 where the server speaks it. */
  prefersHttp2: boolean;
  send(head: OutgoingHead, events: OutgoingEvents): Promise<Outgoing>;
}

export interface PassageOptions extends Pick<Passage, "uid" | "admitted" | "secure" | "bodies" | "identityOf"> {
  keepAlive: boolean;
  /** A connection that is already there, for the first request. */
  ready?: OpenConnection;
  /** Authorities of servers; absent = those that Node knows. */
  authorities?: string | undefined;
}

export function openPassage(dialler: Dialler, options: PassageOptions): Passage & { close(): void } {
  const { uid, admitted, secure, keepAlive, bodies, identityOf, authorities } = options;
  let { ready } = options;
  /** A connection over which the server chose HTTP/1.1, for the next request. */
  let chosen: TLSSocket | undefined;
  /** The server's answer to the offer of HTTP/2. */
  let session: Promise<ClientHttp2Session | null> | undefined;
  const sessions = new Set<ClientHttp2Session>();
  let isClosed = false;
  const agent: Agent = new HttpAgent({ keepAlive });
  const dial = async (): Promise<OpenConnection> => {
    const dialled = ready && !ready.socket.destroyed ? ready : await dialler.dial(uid, admitted);
    ready = undefined;
    if (isRefusal(dialled)) throw new RefusalError(dialled);
    dialled.checked = true;
    return dialled;
  };
  const connect = async (): Promise<Duplex> => {
    const kept = chosen;
    chosen = undefined;
    if (kept && !kept.destroyed) return kept;
    const dialled = await dial();
    return secure ? secured(dialled, admitted.target, { protocols: ["http/1.1"], authorities }) : dialled.socket;
  };
  agent.createConnection = (_, onCreate = () => {}) => {
    connect().then(
      (stream) => onCreate(null, stream),
      (error: Error) => onCreate(error, NO_STREAM),
    );
    return undefined;
  };
  /** Null when the server speaks HTTP/1.1. */
  const connectHttp2 = async (): Promise<ClientHttp2Session | null> => {
    const dialled = await dial();
    const stream = await secured(dialled, admitted.target, { protocols: ["h2", "http/1.1"], authorities });
    if (isClosed) {
      stream.destroy();
      throw new Error("the client left");
    }
    if (stream.alpnProtocol !== "h2") {
      chosen = stream;
      return null;
    }
    // The session counts what moves; the socket below sees nothing of it.
    dialled.socket.setTimeout(0);
    const { session: opened, ready: connected } = openSession(stream, uid);
    sessions.add(opened);
    opened.once("close", () => sessions.delete(opened));
    await connected;
    return opened;
  };
  const sessionNow = async (): Promise<ClientHttp2Session | null> => {
    session ??= connectHttp2();
    const asked = session;
    const found = await asked.catch((error: unknown) => {
      if (session === asked) session = undefined;
      throw error;
    });
    // A server that leaves takes no more requests on this connection.
    if (!found || !(found.closed || found.destroyed)) return found;
    if (session === asked) session = undefined;
    return sessionNow();
  };
  const passage: Passage & { close(): void } = {
    ...{ uid, admitted, secure, agent, bodies, identityOf, prefersHttp2: false },
    async send(head, events) {
      const found = passage.prefersHttp2 ? await sessionNow() : null;
      return found ? sendHttp2(found, head, events) : sendHttp1(agent, head, events);
    },
    close() {
      isClosed = true;
      agent.destroy();
      ready?.socket.destroy();
      chosen?.destroy();
      for (const each of sessions) each.destroy();
    },
  };
  return passage;
}

/** A host that accepts connections and then says nothing. */
const HANDSHAKE_WAIT_MS = 30_000;

/** Node's types ask for a stream beside an error; Node does not look at it. */
const NO_STREAM = new Duplex();

interface Securing {
  protocols: string[];
  authorities: string | undefined;
}

/** TLS to the server, whose certificate is verified whatever the environment of this process says. */
function secured(
  { socket }: OpenConnection,
  { host }: Target,
  { protocols: ALPNProtocols, authorities }: Securing,
): Promise<TLSSocket> {
  const stream = connectTls({
    ...(host.address ? { host: host.text } : { servername: host.text }),
    ...{ socket, ALPNProtocols, rejectUnauthorized: true },
    ...(authorities === undefined ? {} : { ca: authorities }),
  });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => stream.destroy(new Error("the host did not answer")), HANDSHAKE_WAIT_MS).unref();
    stream.once("close", () => clearTimeout(timer));
    stream.once("secureConnect", () => {
      clearTimeout(timer);
      resolve(stream);
    });
    stream.once("error", (error) => {
      const message = `The certificate of ${host.text} is not accepted or its TLS failed: ${error.message}.`;
      reject(new RefusalError(refusal(502, "upstream_tls_failed", message)));
    });
    stream.once("close", () => reject(new RefusalError(refusal(502, "connection_broken", "The connection broke."))));
  });
}
