/**
 * The sockets on which a workload calls the platform. They lie in a folder that the workload sees but cannot write.
 * Each workload has its own folder, so the socket of a call identifies the caller.
 */
import { once } from "node:events";
import { closeSync, openSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { basename, dirname } from "node:path";
import { DOOR_CONNECTIONS_MAX } from "../../../contract/sandbox-wire.ts";

/** Opens a door's listener. Closing it leaves open connections alone. */
export async function openDoor(
  path: string,
  onSocket: (socket: Socket) => void,
  connectionsMax = DOOR_CONNECTIONS_MAX,
): Promise<Server> {
  rmSync(path, { force: true });
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => socket.destroy()); // the workload hung up; the reader of the socket sees its end
    onSocket(socket);
  });
  server.maxConnections = connectionsMax;
  if (Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX) {
    // Through /proc/self/fd, since the path is too long. The descriptor stays open while the listener needs the name.
    const fd = openSync(dirname(path), "r");
    server.once("close", () => closeSync(fd));
    server.listen({ path: `/proc/self/fd/${fd}/${basename(path)}`, backlog: BACKLOG });
  } else server.listen({ path, backlog: BACKLOG });
  await once(server, "listening");
  server.unref();
  return server;
}

const BACKLOG = 128;
/** Longest path of a socket address, without the final NUL. */
const SOCKET_PATH_BYTES_MAX = 107;
