/**
 * A platform door: a listener on the sandbox's own loopback whose every connection continues on a unix socket that the
 * platform has bound into the sandbox. It carries bytes and knows nothing about them.
 */
import { connect, createServer, type Server } from "node:net";
import type { DoorConfig } from "../../contract/sandbox-wire.ts";
import { pipeBoth } from "./pipe.ts";

export function createPlatformDoor({ socket }: DoorConfig, count: (change: 1 | -1) => void): Server {
  return createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (client) => {
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
      client.resume();
    });
  });
}
