/** Tells a TLS connection from plain HTTP by its first bytes, which stay unread for the server that gets it. */
import type { Socket } from "node:net";
import { HEAD_WAIT_MS } from "../newcomers.ts";

/** Type of a TLS record with a handshake message. No method of HTTP begins with this byte. */
const TLS_HANDSHAKE = 0x16;

export function onFirstBytes(socket: Socket, take: (first: Buffer, isTls: boolean) => void): void {
  const give = (): void => void socket.destroy();
  const look = (): void => {
    const first: Buffer | null = socket.read();
    // Readable without bytes: the client has ended the connection.
    if (first === null) {
      give();
      return;
    }
    socket.setTimeout(0);
    socket.off("timeout", give);
    socket.off("error", give);
    socket.unshift(first);
    take(first, first[0] === TLS_HANDSHAKE);
  };
  socket.setTimeout(HEAD_WAIT_MS);
  socket.on("timeout", give);
  socket.on("error", give);
  socket.once("readable", look);
}
