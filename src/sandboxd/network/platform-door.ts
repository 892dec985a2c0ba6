/**
 * A platform door: a listener on the sandbox's own loopback whose every connection continues on a unix socket that the
 * platform has bound into the sandbox. It carries bytes and knows nothing about them.
 */
import { connect, createServer, type Server } from "node:net";
import { DOOR_CONNECTIONS_MAX, type DoorConfig } from "../../contract/sandbox-wire.ts";
import { pipeBoth } from "./pipe.ts";

/** How long the two directions of a connection that the platform has ended may differ. */
const LINGER_MS = 5000;

export function createPlatformDoor({ socket }: DoorConfig, count: (change: 1 | -1) => void): Server {
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (client) => {
    const platform = connect({ path: socket, allowHalfOpen: true });
    const refuse = (): void => {
      client.destroy();
      platform.destroy();
    };
    client.once("error", refuse);
    platform.once("error", refuse);
    platform.once("connect", () => {
      client.off("error", refuse);
      platform.off("error", refuse);
      count(1);
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
