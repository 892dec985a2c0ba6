/** The address of this machine that a client can use when a server listens on every address. */
import { createSocket } from "node:dgram";
import { once } from "node:events";

const EVERY_ADDRESS = new Set(["0.0.0.0", "::", "[::]"]);

/** A documentation address (RFC 5737). Connecting a UDP socket to it looks up the route and sends nothing. */
const FAR_AWAY = "198.51.100.1";
const PORT = 9;

export const isEveryAddress = (host: string): boolean => EVERY_ADDRESS.has(host);

/** The address that this machine uses towards others; the loopback address when it has no route. */
export async function ownAddress(): Promise<string> {
  const socket = createSocket("udp4");
  try {
    socket.connect(PORT, FAR_AWAY);
    await once(socket, "connect");
    return socket.address().address;
  } catch {
    return "127.0.0.1";
  } finally {
    socket.close();
  }
}
