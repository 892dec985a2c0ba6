/**
 * Connections that the operator's proxies pass on with a header of the PROXY protocol: the header is read, and from then
 * on the connection has the address of the client that the header names. Connections from anywhere else have no such
 * header, and one that they send is not HTTP.
 */
import { type Server, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Proxies } from "../lib/network/proxies.ts";
import { HEAD_WAIT_MS } from "./newcomers.ts";
import { type ProxyHeader, readProxyHeader } from "./proxy-header.ts";

type Client = NonNullable<ProxyHeader["client"]>;
type Listener = (socket: Socket) => void;

const proxied = new WeakSet<Socket>();

/** Whether a header of this connection has been read: another process could not read it again. */
export const isProxied = (socket: Socket): boolean => proxied.has(socket);

/** Call it when all listeners for connections are there. */
export function readProxyHeaders(server: Server, proxies: Proxies): void {
  /** By the proxy's address and port, which a TLS socket shares with its TCP socket. */
  const clients = new Map<string, Client>();
  const listeners = server.listeners("connection") as Listener[];
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    const go = (): void => {
      for (const listener of listeners) listener.call(server, socket);
    };
    const { remoteAddress } = socket;
    if (!(socket instanceof Socket) || remoteAddress === undefined || !proxies.include(remoteAddress)) return go();
    const peer = peerOf(socket);
    takeHeader(socket, (client) => {
      proxied.add(socket);
      if (client !== null) {
        clients.set(peer, client);
        socket.once("close", () => clients.delete(peer));
        comesFrom(socket, client);
      }
      go();
    });
  });
  server.prependListener("secureConnection", (socket: TLSSocket) => {
    const client = clients.get(peerOf(socket));
    if (client) comesFrom(socket, client);
  });
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

function comesFrom(socket: Socket, { address, port }: Client): void {
  Object.defineProperties(socket, { remoteAddress: { value: address }, remotePort: { value: port } });
}

/** A connection without a whole header in time is closed. */
function takeHeader(socket: Socket, take: (client: Client | null) => void): void {
  let read: Buffer = Buffer.alloc(0);
  const give = (): void => void socket.destroy();
  const look = (): void => {
    const bytes: Buffer | null = socket.read();
    if (bytes === null) return;
    read = read.length === 0 ? bytes : Buffer.concat([read, bytes]);
    const header = readProxyHeader(read);
    if (header === "more") return;
    if (header === "none") {
      give();
      return;
    }
    clearTimeout(timer);
    socket.off("readable", look);
    for (const event of ["end", "error"]) socket.off(event, give);
    if (read.length > header.length) socket.unshift(read.subarray(header.length));
    take(header.client);
  };
  const timer = setTimeout(give, HEAD_WAIT_MS);
  socket.once("close", () => clearTimeout(timer));
  socket.on("readable", look);
  for (const event of ["end", "error"]) socket.on(event, give);
}
