/** Tells a TLS connection from plain HTTP by its first bytes, which stay unread for the server that gets it. */
import type { Socket } from "node:net";
import { HEAD_WAIT_MS } from "../newcomers.ts";

/** Type of a TLS record with a handshake message. No method of HTTP begins with this byte. */
const TLS_HANDSHAKE = 0x16;
/** Type, version and length of a TLS record. */
const RECORD_HEADER_BYTES = 5;
const RECORD_BYTES_MAX = 16 * 1024;

/** `take` gets the whole first record of a TLS connection, which may come in several packets. */
export function onFirstBytes(socket: Socket, take: (first: Buffer, isTls: boolean) => void): void {
  let read: Buffer = Buffer.alloc(0);
  const give = (): void => void socket.destroy();
  const look = (): void => {
    const bytes: Buffer | null = socket.read();
    // Readable without bytes: the client has ended the connection.
    if (bytes === null) {
      give();
      return;
    }
    read = read.length === 0 ? bytes : Buffer.concat([read, bytes]);
    const isTls = read[0] === TLS_HANDSHAKE;
    if (isTls && isPart(read)) {
      socket.once("readable", look);
      return;
    }
    clearTimeout(timer);
    socket.off("error", give);
    socket.unshift(read);
    take(read, isTls);
  };
  const timer = setTimeout(give, HEAD_WAIT_MS);
  socket.once("close", () => clearTimeout(timer));
  socket.on("error", give);
  socket.once("readable", look);
}

function isPart(record: Buffer): boolean {
  if (record.length < RECORD_HEADER_BYTES) return true;
  const length = record.readUInt16BE(RECORD_HEADER_BYTES - 2);
  return length <= RECORD_BYTES_MAX && record.length < RECORD_HEADER_BYTES + length;
}
