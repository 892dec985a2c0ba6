/** A port that is known before the server behind it listens, so that a server can be told its own public address. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface FrontDoor extends AsyncDisposable {
  port: number;
  /** Connections go here from now on. */
  leadTo(url: string): void;
}

export async function openFrontDoor(): Promise<FrontDoor> {
  let target = 0;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const inner = connect(target, "127.0.0.1");
    for (const [one, other] of [
      [client, inner],
      [inner, client],
    ] as const) {
      open.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => open.delete(one));
      one.pipe(other);
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    leadTo(url) {
      target = Number(new URL(url).port);
    },
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
