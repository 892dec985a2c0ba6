/**
 * Reaching a workload's unix sockets from outside. The folder they lie in is shared with the workload, whose root can
 * put a symbolic link to any socket of the host in their place. So the name is opened without following links, checked
 * to be a socket, and connected to through the descriptor: what was checked is what is dialled.
 */

import { closeSync, constants, existsSync, fstatSync, openSync } from "node:fs";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { PlatformError } from "../../contract/errors.ts";
import { PORT_DOOR_LINE_BYTES_MAX, portDoorRequest, SANDBOX_FILES } from "../../contract/sandbox-wire.ts";
import type { CallOptions, DialTarget, UnixEndpoint } from "./endpoint.ts";

export async function dialUnix(endpoint: UnixEndpoint, target: DialTarget, options: CallOptions = {}): Promise<Duplex> {
  if (target === "api" || target === "control") return connectTo(endpoint, SANDBOX_FILES[target], options);
  const socket = await connectTo(endpoint, SANDBOX_FILES.ports, options);
  try {
    await passPortDoor(socket, target, options);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Not in `fs.constants`; the same number on x86_64 and aarch64. */
const O_PATH = 0o10000000;

/** In the folder of a workload while its memory is copied: its daemon has no socket then, which is over in a moment. */
export const COPYING_FILE = "copying";
const AWAY_MS_MAX = 5_000;
const AWAY_LOOK_MS = 5;

async function connectTo(endpoint: UnixEndpoint, name: string, options: CallOptions): Promise<Socket> {
  const deadline = Date.now() + AWAY_MS_MAX;
  for (let wasAway = false; ; ) {
    try {
      return await connectOnce(endpoint, name, options);
    } catch (error) {
      const isAway = existsSync(markerOf(endpoint));
      // Its end may fall between the attempt and the look, so an attempt follows it.
      if (!(isAway || wasAway) || Date.now() > deadline || options.signal?.aborted) throw error;
      wasAway = isAway;
    }
    await returned(endpoint, name);
  }
}

const markerOf = ({ dir }: UnixEndpoint): string => `${dir}/../${COPYING_FILE}`;

const returning = new Map<string, Promise<void>>();

/**
 * Resolves when the socket may be there again, or after AWAY_MS_MAX. All who wait for it share the looks: many requests
 * to a workload that is being copied would take the whole processor otherwise.
 */
function returned(endpoint: UnixEndpoint, name: string): Promise<void> {
  const path = `${endpoint.dir}/${name}`;
  const look = async (): Promise<void> => {
    const deadline = Date.now() + AWAY_MS_MAX;
    do await delay(AWAY_LOOK_MS);
    while (existsSync(markerOf(endpoint)) && !existsSync(path) && Date.now() <= deadline);
  };
  const waiting = returning.get(path) ?? look().finally(() => returning.delete(path));
  returning.set(path, waiting);
  return waiting;
}

async function connectOnce(endpoint: UnixEndpoint, name: string, { signal }: CallOptions): Promise<Socket> {
  signal?.throwIfAborted();
  let fd: number;
  try {
    fd = openSync(`${endpoint.dir}/${name}`, O_PATH | constants.O_NOFOLLOW);
  } catch (error) {
    throw unreachable("The workload has no such socket.", error);
  }
  if (!fstatSync(fd).isSocket()) {
    closeSync(fd);
    throw unreachable("The workload replaced its socket by something else.");
  }
  return new Promise<Socket>((resolve, reject) => {
    const socket = connect({ path: `/proc/self/fd/${fd}` });
    const settle = (): void => {
      closeSync(fd);
      signal?.removeEventListener("abort", onAbort);
      socket.off("connect", onConnect).off("error", onError);
    };
    const onAbort = (): void => {
      settle();
      socket.destroy();
      reject(signal?.reason);
    };
    const onConnect = (): void => {
      settle();
      resolve(socket);
    };
    const onError = (error: Error): void => {
      settle();
      reject(unreachable("Nothing listens on the workload's socket.", error));
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    socket.on("connect", onConnect).on("error", onError);
  });
}

/** Sends the preface and takes exactly the answer line off the stream; payload behind it stays in the stream. */
function passPortDoor(socket: Socket, port: number, { signal }: CallOptions): Promise<void> {
  socket.write(portDoorRequest(port));
  return new Promise<void>((resolve, reject) => {
    let line = Buffer.alloc(0);
    const onReadable = (): void => {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) return;
      line = Buffer.concat([line, chunk]);
      const end = line.indexOf(0x0a);
      if (end < 0 && line.length <= PORT_DOOR_LINE_BYTES_MAX) return;
      const answer = end < 0 ? "ERR the port door answers nonsense" : line.toString("latin1", 0, end);
      settle();
      if (answer === "OK") {
        if (line.length > end + 1) socket.unshift(line.subarray(end + 1));
        resolve();
      } else reject(unreachable(`Port ${port}: ${answer.slice(0, PORT_DOOR_LINE_BYTES_MAX).replace(/^ERR /, "")}`));
    };
    const fail = (error: unknown): void => {
      settle();
      reject(error);
    };
    const onAbort = (): void => fail(signal?.reason);
    const onError = (error: Error): void => fail(unreachable("The port door broke.", error));
    const onEnd = (): void => fail(unreachable("The port door closed."));
    const settle = (): void => {
      signal?.removeEventListener("abort", onAbort);
      socket.off("readable", onReadable).off("error", onError).off("end", onEnd);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    socket.on("readable", onReadable).on("error", onError).on("end", onEnd);
  });
}

const unreachable = (message: string, cause?: unknown): PlatformError =>
  new PlatformError("bad_gateway", message, cause === undefined ? {} : { cause });
