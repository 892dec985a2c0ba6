/**
 * The socket at which the owner takes the requests that its edge processes hand on. A connection begins with a secret
 * that only those processes were told: whoever else can open the socket cannot say whose request it is.
 */
import { randomBytes, timingSafeEqual } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { markEdge } from "../../http/peer-field.ts";
import type { Running } from "../../lib/lifecycle.ts";

const SECRET_BYTES = 32;
/** Time for the secret, which is sent with the connection. */
const SECRET_WAIT_MS = 5000;
/** Length of a path that every system takes for a socket. */
const PATH_BYTES_MAX = 100;

export interface OwnerDoor extends Running {
  readonly path: string;
  /** base64 */
  readonly secret: string;
}

export async function openOwnerDoor(dataDir: string, accept: (socket: Socket) => void): Promise<OwnerDoor> {
  const secret = randomBytes(SECRET_BYTES);
  const open = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    socket.on("error", () => socket.destroy());
    takeSecret(socket, secret, () => {
      markEdge(socket);
      accept(socket);
    });
  });
  const path = socketPath(dataDir);
  rmSync(path, { force: true }); // left by a killed process with this pid
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject).listen(path, resolve);
  await promise;
  return {
    path,
    secret: secret.toString("base64"),
    async stop() {
      const closed = new Promise((ended) => server.close(ended));
      for (const socket of open) socket.destroy();
      await closed;
      if (dirname(path) !== folderOf(dataDir)) rmSync(dirname(path), { recursive: true, force: true });
    },
  };
}

const folderOf = (dataDir: string): string => join(dataDir, "run");

/** In the data folder, which is this user's alone, unless its name is too long for a socket. */
function socketPath(dataDir: string): string {
  const path = join(folderOf(dataDir), `edge-${process.pid}.sock`);
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) return join(mkdtempSync(join(tmpdir(), "berth-edge-")), "owner.sock");
  mkdirSync(folderOf(dataDir), { recursive: true, mode: 0o700 });
  return path;
}

function takeSecret(socket: Socket, secret: Buffer, then: () => void): void {
  const timer = setTimeout(() => socket.destroy(), SECRET_WAIT_MS);
  const look = (): void => {
    const said: Buffer | null = socket.read(SECRET_BYTES);
    if (said === null) return;
    clearTimeout(timer);
    socket.off("readable", look);
    if (said.length === SECRET_BYTES && timingSafeEqual(said, secret)) then();
    else socket.destroy();
  };
  socket.once("close", () => clearTimeout(timer));
  socket.on("readable", look);
}
