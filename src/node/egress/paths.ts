/** The ways from this machine to a host: each address of the host, from each source address that may be used for it. */
import { connect, type Socket } from "node:net";
import { type SourceAddresses, sourcesTowards } from "../../lib/network/egress/source-addresses.ts";

const CONNECT_WAIT_MS = 10_000;

export interface Path {
  address: string;
  /** The source address; absent = the machine chooses. */
  from?: string;
}

/** The ways to the addresses of a host. A workload with a gateway never leaves from another address. */
export const pathsTo = (addresses: readonly string[], sources: SourceAddresses | null, turn: number): Path[] =>
  addresses.flatMap((address): Path[] =>
    sources ? sourcesTowards(sources, address, turn).map((from) => ({ address, from })) : [{ address }],
  );

type Dialled = { socket: Socket } & Path;

/** `no-source`: the machine has none of the source addresses. Null: the host does not accept the connection. */
export async function connectAny(paths: readonly Path[], port: number): Promise<Dialled | "no-source" | null> {
  const deadline = Date.now() + CONNECT_WAIT_MS;
  let failure: "no-source" | null = "no-source";
  let unreachable = "";
  for (const path of paths) {
    const waitMs = deadline - Date.now();
    if (waitMs <= 0) break;
    // A host that one source address does not reach is not tried from the next one: the time is for its other addresses.
    if (path.address === unreachable) continue;
    const socket = await tryConnect(path, port, waitMs);
    if (socket === "no-source") continue;
    if (socket) return { socket, ...path };
    failure = null;
    unreachable = path.address;
  }
  return failure;
}

function tryConnect({ address, from }: Path, port: number, waitMs: number): Promise<Socket | "no-source" | null> {
  return new Promise((resolve) => {
    const source = from === undefined ? {} : { localAddress: from };
    const socket = connect({ host: address, port, ...source, allowHalfOpen: true, timeout: waitMs });
    const settle = (result: Socket | "no-source" | null): void => {
      socket.removeAllListeners();
      socket.setTimeout(0);
      if (result !== socket) socket.on("error", () => {}).destroy(); // the failure is told by the answer
      resolve(result);
    };
    socket.once("connect", () => settle(socket));
    socket.once("error", ({ code }: NodeJS.ErrnoException) => settle(code === "EADDRNOTAVAIL" ? "no-source" : null));
    socket.once("timeout", () => settle(null));
  });
}
