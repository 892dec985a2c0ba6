/** Connects to the owner, for a request that it serves. The secret proves that the connection is an edge process's. */
import { connect, type Socket } from "node:net";
import type { EdgeStart } from "../messages.ts";

export function dialOwner({ path, secret }: EdgeStart["door"]): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      socket.write(Buffer.from(secret, "base64"));
      resolve(socket);
    });
  });
}
