/**
 * The port door: a client that can open its unix socket reaches any port inside the sandbox, also one bound only to the
 * loopback address. See PORT_DOOR in the wire contract for the protocol.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { PORT_DOOR_LINE_BYTES_MAX } from "../../contract/sandbox-wire.ts";
import { pipeBoth } from "./pipe.ts";

/** Time for the client to send its first line. */
const LINE_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 10_000;

/** Connects to a port inside the sandbox. */
export type Dial = (port: number) => Promise<Socket | Error>;

export function createPortDoor(dial: Dial, count: (change: 1 | -1) => void): Server {
  return createServer({ allowHalfOpen: true }, (client) => {
    client.on("error", () => client.destroy());
    void serve(client, dial, count);
  });
}

async function serve(client: Socket, dial: Dial, count: (change: 1 | -1) => void): Promise<void> {
  const first = await readLine(client);
  if (first === null) return void client.destroy();
  const match = /^PORT (\d{1,5})$/.exec(first.line);
  const port = Number(match?.[1] ?? 0);
  if (port < 1 || port > 65535) return void client.end("ERR expected PORT and a number from 1 to 65535\n");
  const target = await dial(port);
  if (client.destroyed) return void (target instanceof Error || target.destroy());
  if (target instanceof Error) return void client.end(`ERR nothing listens on port ${port}: ${target.message}\n`);
  client.write("OK\n");
  if (first.rest.byteLength > 0) target.write(first.rest);
  count(1);
  pipeBoth(client, target, () => count(-1));
}

/** The first line and the bytes after it. Null when the client closed, was too slow or sent too much. */
function readLine(client: Socket): Promise<{ line: string; rest: Buffer } | null> {
  return new Promise((resolve) => {
    let received: Buffer = Buffer.alloc(0);
    const settle = (result: { line: string; rest: Buffer } | null): void => {
      clearTimeout(timer);
      client.off("data", onData);
      client.off("close", onClose);
      client.pause();
      resolve(result);
    };
    const onClose = (): void => settle(null);
    const onData = (chunk: Buffer): void => {
      received = received.byteLength === 0 ? chunk : Buffer.concat([received, chunk]);
      const newline = received.indexOf(0x0a);
      if (newline !== -1) {
        settle({ line: received.toString("latin1", 0, newline), rest: received.subarray(newline + 1) });
      } else if (received.byteLength > PORT_DOOR_LINE_BYTES_MAX) settle(null);
    };
    const timer = setTimeout(onClose, LINE_TIMEOUT_MS);
    client.on("data", onData);
    client.on("close", onClose);
  });
}

/** Tries loopback first, then the namespace's other addresses, for a server bound to one of them. */
export async function dial(port: number): Promise<Socket | Error> {
  let failure = new Error("ECONNREFUSED");
  for (const host of addresses()) {
    const outcome = await tryConnect(host, port);
    if (!(outcome instanceof Error)) return outcome;
    failure = outcome;
  }
  return failure;
}

function* addresses(): Iterable<string> {
  yield "127.0.0.1";
  yield "::1";
  for (const list of Object.values(networkInterfaces())) {
    for (const { address, internal, scopeid } of list ?? []) if (!internal && !scopeid) yield address;
  }
}

function tryConnect(host: string, port: number): Promise<Socket | Error> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
    const timer = setTimeout(() => fail(new Error("ETIMEDOUT")), CONNECT_TIMEOUT_MS);
    const fail = (error: NodeJS.ErrnoException): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(new Error(error.code ?? error.message));
    };
    socket.once("error", fail);
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.off("error", fail);
      resolve(socket);
    });
  });
}
