/** Reaching a workload through the gate of its daemon, with a proof in both directions. */
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { PlatformError } from "../../contract/errors.ts";
import { enterGate } from "../../lib/network/gate/handshake.ts";
import type { CallOptions, DialTarget, TcpEndpoint } from "./endpoint.ts";

/** Neighbours in a cluster answer in milliseconds; an address that is gone never does. */
const CONNECT_WAIT_MS = 10_000;
const KEEP_ALIVE_MS = 30_000;

export async function dialTcp(
  endpoint: TcpEndpoint,
  target: DialTarget,
  { signal }: CallOptions = {},
): Promise<Duplex> {
  signal?.throwIfAborted();
  const { host, port, token } = endpoint;
  const socket = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS });
  const onAbort = (): void => void socket.destroy();
  signal?.addEventListener("abort", onAbort, { once: true });
  socket.on("error", () => {}); // the calls below, and later the caller, hear of it
  try {
    await connected(socket);
    const purpose = typeof target === "number" ? `port:${target}` : target;
    const rest = await enterGate(socket, { token, purpose });
    if (rest.length > 0) socket.unshift(rest);
    return socket;
  } catch (error) {
    socket.destroy();
    if (signal?.aborted) throw signal.reason;
    const reason = error instanceof Error ? error.message : String(error);
    const where = typeof target === "number" ? `Port ${target}` : "The workload cannot be reached";
    throw new PlatformError("bad_gateway", `${where}: ${reason}`, { cause: error });
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

function connected(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("nothing answers there")), CONNECT_WAIT_MS);
    const settle = (): void => {
      clearTimeout(timer);
      socket.off("connect", onConnect).off("error", onError).off("close", onClose);
    };
    const onConnect = (): void => {
      settle();
      resolve();
    };
    const onError = (error: Error): void => {
      settle();
      reject(error);
    };
    const onClose = (): void => onError(new Error("the connection was closed"));
    socket.on("connect", onConnect).on("error", onError).on("close", onClose);
  });
}
