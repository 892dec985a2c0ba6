/** A TCP relay in front of one server's port, which a test can cut: the network between servers, as a test may break it. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { closeAtEnd } from "../closing.ts";

export interface Relay {
  /** Where the relay listens, as host:port. */
  readonly address: string;
  /** Ends every connection. New ones are closed at once ("refused") or get no answer ("silent"). */
  cut(how: Cut): void;
  mend(): void;
  stop(): Promise<void>;
}

export type Cut = "refused" | "silent";

/** `port`: the local port that the relay leads to. */
export async function startRelay(port: number): Promise<Relay> {
  const open = new Set<Socket>();
  let broken: Cut | null = null;
  const keep = (socket: Socket): void => {
    open.add(socket);
    socket.on("error", () => {}).once("close", () => open.delete(socket));
  };
  const server = createServer({ noDelay: true }, (client) => {
    keep(client);
    if (broken === "silent") return void client.resume();
    if (broken === "refused") return void client.destroy();
    const upstream = connect({ port, host: "127.0.0.1", noDelay: true });
    keep(upstream);
    client.pipe(upstream).pipe(client);
    client.once("close", () => upstream.destroy());
    upstream.once("close", () => client.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const hangUp = (): void => {
    for (const socket of open) socket.destroy();
  };
  const stop = async (): Promise<void> => {
    closed();
    const ended = new Promise((resolve) => server.close(resolve));
    hangUp();
    await ended;
  };
  const closed = closeAtEnd(stop);
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut(how) {
      broken = how;
      hangUp();
    },
    mend() {
      broken = null;
      hangUp();
    },
    stop,
  };
}
