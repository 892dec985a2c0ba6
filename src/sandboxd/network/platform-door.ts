/**
 * A platform door: a listener on the sandbox's own loopback whose every connection continues on a unix socket that the
 * platform has bound into the sandbox, or on a TCP port of the platform, with a proof. It carries bytes and knows nothing
 * about them.
 */
import { connect, createServer, type Server } from "node:net";
import { DOOR_CONNECTIONS_MAX, type RemoteDoor } from "../../contract/sandbox-wire.ts";
import { enterGate } from "../../lib/network/gate/handshake.ts";
import { pipeBoth } from "./pipe.ts";

/** How long the two directions of a connection that the platform has ended may differ. */
const LINGER_MS = 5000;

/** Where a connection goes; neither in a sandbox without an owner. */
export type Way = () => { socket?: string | undefined; remote?: RemoteDoor | undefined };

export function createPlatformDoor(way: Way, count: (change: 1 | -1) => void): Server {
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (client) => {
    const { socket, remote } = way();
    if (socket === undefined && remote === undefined) return void client.destroy();
    const platform = remote
      ? connect({ host: remote.host, port: remote.port, allowHalfOpen: true, noDelay: true })
      : connect({ path: socket ?? "", allowHalfOpen: true });
    const refuse = (): void => {
      client.destroy();
      platform.destroy();
    };
    client.once("error", refuse);
    platform.once("error", refuse);
    platform.once("connect", async () => {
      const early = remote && (await enterGate(platform, remote).catch(() => null));
      if (early === null) return refuse();
      client.off("error", refuse);
      platform.off("error", refuse);
      count(1);
      if (early && early.byteLength > 0) client.write(early);
      pipeBoth(client, platform, () => count(-1));
      // The platform reads no more than this after its answer. A client that does not hang up would stay for ever.
      platform.once("end", () => {
        const timer = setTimeout(refuse, LINGER_MS).unref();
        client.once("close", () => clearTimeout(timer));
      });
      client.resume();
    });
  });
  server.maxConnections = DOOR_CONNECTIONS_MAX;
  return server;
}
