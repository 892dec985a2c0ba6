/**
 * The field with which a server describes a request that it sends to another server of the same database: the address
 * and the scheme of the client whose request it hands on, or that the request is the server's own. An edge process
 * describes the requests that it hands to its owner in the same way. The field is believed on an authenticated peer
 * connection only, and every request there has exactly one. On any other connection it means nothing.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { lowerName } from "./http1/header-name.ts";

export const PEER_FIELD = "x-berth-peer";

/** The client of a request, as the server knows it that took the connection. */
export interface Client {
  /** Undefined for a connection from inside a workload. */
  address: string | undefined;
  secure: boolean;
  /** The uid of the workload that the connection comes from, where the server knows it. */
  workload?: string | undefined;
}

/** A request on a peer connection: a client's that was handed on, or one of the other server itself. */
export type PeerRequest = { from: "client"; client: Client } | { from: "server" };

const FROM_SERVER = "server";
/** An address, `@` and the uid of a workload, or `-` for a workload that is not known. */
const FROM_CLIENT = /^client (-|@[\w-]{1,64}|[\w.:%-]{2,64}) (http|https)$/;

const peers = new WeakSet<Duplex>();
const edges = new WeakSet<Duplex>();
const workloads = new WeakMap<Duplex, string>();
const clients = new WeakMap<IncomingMessage, Client>();

/** From now on the requests of this connection are believed to come from a server with the shared key. */
export const markPeer = (connection: Duplex): void => void peers.add(connection);

/** The same for a connection of an edge process of this server. */
export function markEdge(connection: Duplex): void {
  markPeer(connection);
  edges.add(connection);
}

/** Says which workload a connection comes from that did not come through the port. */
export const markWorkload = (connection: Duplex, uid: string): void => void workloads.set(connection, uid);

/** Undefined for a connection through the port. */
export const workloadOf = (connection: Duplex): string | undefined => workloads.get(connection);

export const isPeer = (connection: Duplex): boolean => peers.has(connection);

/** Whether another server has handed the requests of this connection on; edge processes are no servers. */
export const isFromServer = (connection: Duplex): boolean => peers.has(connection) && !edges.has(connection);

export const clientValue = ({ address, secure, workload }: Client): string =>
  `client ${address ?? (workload === undefined ? "-" : `@${workload}`)} ${secure ? "https" : "http"}`;

export const SERVER_VALUE = FROM_SERVER;

/** Removes the field from a head. Null when the head has none, more than one, or a value that cannot be read. */
export function takePeerField(rawHeaders: string[], names?: string[]): PeerRequest | null {
  let value: string | null = null;
  for (let i = rawHeaders.length - 2; i >= 0; i -= 2) {
    if (lowerName(rawHeaders[i] as string) !== PEER_FIELD) continue;
    if (value !== null) return null;
    value = rawHeaders[i + 1] as string;
    rawHeaders.splice(i, 2);
    names?.splice(i / 2, 1);
  }
  return value === null ? null : readValue(value);
}

/** Takes the field from a request that Node's server has read, and remembers the client for `clientOf`. */
export function takePeerRequest(req: IncomingMessage): PeerRequest | null {
  const request = takePeerField(req.rawHeaders);
  delete req.headers[PEER_FIELD];
  if (request?.from === "client") clients.set(req, request.client);
  return request;
}

/** Whose request this is: the client of the connection, or of the connection that another server took. */
export function clientOf(req: IncomingMessage): Client {
  const { socket } = req;
  return (
    (peers.has(socket) ? clients.get(req) : undefined) ?? {
      address: socket.remoteAddress,
      secure: "encrypted" in socket && socket.encrypted === true,
      workload: workloads.get(socket),
    }
  );
}

function readValue(value: string): PeerRequest | null {
  if (value === FROM_SERVER) return { from: "server" };
  const [, place, scheme] = FROM_CLIENT.exec(value) ?? [];
  if (place === undefined) return null;
  const secure = scheme === "https";
  if (place.startsWith("@"))
    return { from: "client", client: { address: undefined, secure, workload: place.slice(1) } };
  return { from: "client", client: { address: place === "-" ? undefined : place, secure } };
}
