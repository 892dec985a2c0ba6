/** Reads the first message of a TLS client as far as the proxy needs it: the name that the client asks for. */

export interface ClientHello {
  /** The server name (SNI), as sent; null when the client sends none. */
  serverName: string | null;
  /** The client sends an encrypted ClientHello (ECH), so `serverName` may not be the name that the server sees. */
  encrypted: boolean;
}

const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const RECORD_BYTES_MAX = 2 ** 14 + 256;
/** A ClientHello with post-quantum keys has about 2 KB. */
export const HELLO_BYTES_MAX = 32 * 1024;
const EXTENSION = { serverName: 0, encryptedClientHello: 0xfe0d } as const;

/** "more" when the message is not complete, "other" when the bytes are not the beginning of TLS. */
export function readClientHello(bytes: Buffer): ClientHello | "more" | "other" {
  const message = joinRecords(bytes);
  if (message === "other") return "other";
  if (message.length > 0 && message[0] !== CLIENT_HELLO) return "other";
  if (message.length < 4) return "more";
  const length = message.readUIntBE(1, 3);
  if (length > HELLO_BYTES_MAX) return "other";
  if (message.length < 4 + length) return "more";
  try {
    return readExtensions(message.subarray(4, 4 + length));
  } catch {
    return "other"; // a length inside points beyond the message
  }
}

/** A message may be cut into several records; the bytes of all records that are there. */
function joinRecords(bytes: Buffer): Buffer | "other" {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (bytes[at] !== HANDSHAKE || (at + 1 < bytes.length && bytes[at + 1] !== 3))
      return parts.length > 0 ? Buffer.concat(parts) : "other";
    if (at + 5 > bytes.length) break;
    const length = bytes.readUInt16BE(at + 3);
    if (length === 0 || length > RECORD_BYTES_MAX) return "other";
    parts.push(bytes.subarray(at + 5, at + 5 + length));
    at += 5 + length;
  }
  return Buffer.concat(parts);
}

function readExtensions(hello: Buffer): ClientHello {
  let at = 2 + 32; // version, random
  at += 1 + hello.readUInt8(at); // session id
  at += 2 + hello.readUInt16BE(at); // cipher suites
  at += 1 + hello.readUInt8(at); // compression methods
  const found: ClientHello = { serverName: null, encrypted: false };
  if (at >= hello.length) return found;
  const end = at + 2 + hello.readUInt16BE(at);
  if (end > hello.length) throw new RangeError("extensions beyond the message");
  for (at += 2; at < end; ) {
    const type = hello.readUInt16BE(at);
    const length = hello.readUInt16BE(at + 2);
    if (at + 4 + length > end) throw new RangeError("an extension beyond the message");
    const content = hello.subarray(at + 4, at + 4 + length);
    if (type === EXTENSION.serverName) {
      // A second name would let two readers see two names.
      if (found.serverName !== null) throw new RangeError("two server names");
      found.serverName = readServerName(content);
    }
    if (type === EXTENSION.encryptedClientHello) found.encrypted = true;
    at += 4 + length;
  }
  return found;
}

/** The list holds exactly one entry, of type host name. */
function readServerName(list: Buffer): string {
  const length = list.readUInt16BE(3);
  if (list.readUInt16BE(0) !== list.length - 2 || list.readUInt8(2) !== 0 || length !== list.length - 5)
    throw new RangeError("not one host name");
  return list.toString("latin1", 5, 5 + length);
}
