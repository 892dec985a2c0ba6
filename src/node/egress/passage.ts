/** The connections behind one client connection: made when a request needs one, kept for the next request. */
import type { Agent } from "node:http";
import { Duplex } from "node:stream";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { Agent as HttpAgent } from "../../lib/network/node-http.ts";
import type { Admitted, Dialler, OpenConnection } from "./dialler.ts";
import type { Passage } from "./forward.ts";
import type { HeldBytes } from "./held-bytes.ts";
import type { IdentityOf } from "./identities.ts";
import { isRefusal, RefusalError, refusal } from "./refusal.ts";
import type { Target } from "./target.ts";

export interface PassageOptions {
  uid: string;
  admitted: Admitted;
  secure: boolean;
  keepAlive: boolean;
  bodies: HeldBytes;
  identityOf: IdentityOf;
  /** A connection that is already there, for the first request. */
  ready?: OpenConnection;
  /** Authorities of servers; absent = those that Node knows. */
  authorities?: string | undefined;
}

export function openPassage(dialler: Dialler, { ready, ...options }: PassageOptions): Passage & { close(): void } {
  const { uid, admitted, secure, keepAlive, bodies, identityOf, authorities } = options;
  let unused = ready;
  const agent: Agent = new HttpAgent({ keepAlive });
  const connect = async (): Promise<Duplex> => {
    const dialled = unused && !unused.socket.destroyed ? unused : await dialler.dial(uid, admitted);
    unused = undefined;
    if (isRefusal(dialled)) throw new RefusalError(dialled);
    dialled.checked = true;
    return secure ? secured(dialled, admitted.target, authorities) : dialled.socket;
  };
  agent.createConnection = (_, onCreate = () => {}) => {
    connect().then(
      (stream) => onCreate(null, stream),
      (error: Error) => onCreate(error, NO_STREAM),
    );
    return undefined;
  };
  return {
    ...{ uid, admitted, secure, agent, bodies, identityOf },
    close() {
      agent.destroy();
      unused?.socket.destroy();
    },
  };
}

/** A host that accepts connections and then says nothing. */
const HANDSHAKE_WAIT_MS = 30_000;

/** Node's types ask for a stream beside an error; Node does not look at it. */
const NO_STREAM = new Duplex();

/** TLS to the server, whose certificate is verified whatever the environment of this process says. */
function secured({ socket }: OpenConnection, { host }: Target, authorities?: string): Promise<TLSSocket> {
  const stream = connectTls({
    ...(host.address ? { host: host.text } : { servername: host.text }),
    socket,
    ALPNProtocols: ["http/1.1"],
    rejectUnauthorized: true,
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
