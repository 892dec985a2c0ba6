/**
 * The daemon's sockets on a TCP port, for a server that shares no folder with the workload. A connection begins with a
 * proof in both directions (`lib/network/gate/wire.ts`) and leads to the API, the control socket or a port inside.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { type GateConfig, HALF_OPEN_MAX, type SandboxdConfig } from "../../contract/sandbox-wire.ts";
import { openGate } from "../../lib/network/gate/handshake.ts";
import { pipeBoth } from "./pipe.ts";
import type { Dial } from "./port-door.ts";

type Paths = Pick<SandboxdConfig, "apiSocket" | "controlSocket">;
type Count = (change: 1 | -1) => void;

export function createGate({ token }: GateConfig, paths: Paths, dial: Dial, count: Count): Server {
  const waiting = new Set<Socket>();
  return createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    client.on("error", () => client.destroy());
    waiting.add(client);
    const [oldest] = waiting;
    // Of many connections without a proof the oldest is closed.
    if (oldest && waiting.size > HALF_OPEN_MAX) {
      waiting.delete(oldest);
      oldest.destroy();
    }
    void serve(client).catch(() => client.destroy());
  });

  async function serve(client: Socket): Promise<void> {
    const entered = await openGate(client, () => token);
    waiting.delete(client);
    if (entered === null) return void client.destroy();
    const port = Number(/^port:(\d{1,5})$/.exec(entered.purpose)?.[1] ?? 0);
    const target = port > 0 && port < 65536 ? await dial(port) : await socketOf(entered.purpose, paths);
    if (client.destroyed) return void (target instanceof Error || target.destroy());
    if (target instanceof Error)
      return void entered.refuse(port > 0 ? `nothing listens there (${target.message})` : target.message);
    entered.accept();
    if (entered.rest.byteLength > 0) target.write(entered.rest);
    if (port > 0) count(1);
    pipeBoth(client, target, () => port > 0 && count(-1));
  }
}

function socketOf(purpose: string, { apiSocket, controlSocket }: Paths): Promise<Socket | Error> {
  const path = purpose === "api" ? apiSocket : purpose === "control" ? controlSocket : null;
  if (path === null) return Promise.resolve(new Error("the gate leads to api, control or a port"));
  return new Promise((resolve) => {
    const socket = connect({ path, allowHalfOpen: true });
    socket.once("error", (error) => resolve(error));
    socket.once("connect", () => resolve(socket));
  });
}
