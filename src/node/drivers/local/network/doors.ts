/**
 * The sockets on which a workload calls the platform. They lie in a folder that the workload sees but cannot write, one
 * folder per workload: which socket a call came in on is who called.
 */
import { once } from "node:events";
import { closeSync, openSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { basename, dirname } from "node:path";

/** A door's listener; closing it leaves open connections alone. */
export async function openDoor(
  path: string,
  onSocket: (socket: Socket) => void,
  connectionsMax = CONNECTIONS_MAX,
): Promise<Server> {
  rmSync(path, { force: true });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => socket.destroy()); // the workload hung up; whoever reads the socket sees its end
    onSocket(socket);
  });
  server.maxConnections = connectionsMax;
  if (Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX) {
    // By descriptor; it stays open as long as the listener, which unlinks that name when it closes.
    const fd = openSync(dirname(path), "r");
    server.once("close", () => closeSync(fd));
    server.listen({ path: `/proc/self/fd/${fd}/${basename(path)}`, backlog: BACKLOG });
  } else server.listen({ path, backlog: BACKLOG });
  await once(server, "listening");
  server.unref();
  return server;
}

/** Per door of one workload: an agent's tools seldom hold more than a few dozen. */
const CONNECTIONS_MAX = 512;
const BACKLOG = 128;
/** Of a socket address, without the final NUL. */
const SOCKET_PATH_BYTES_MAX = 107;
