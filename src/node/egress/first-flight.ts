/** Looks at the first bytes that a client sends through a tunnel: is this TLS, a plain HTTP request, or something else. */
import type { Duplex } from "node:stream";
import { type ClientHello, HELLO_BYTES_MAX, readClientHello } from "./client-hello.ts";

export type FirstFlight =
  | { protocol: "tls"; hello: ClientHello; bytes: Buffer }
  /** "unclear": TLS or HTTP whose beginning cannot be read, though a server may read it. */
  | { protocol: "http" | "other" | "unclear"; bytes: Buffer }
  /** The client ended without a byte, or broke off. */
  | { protocol: "none"; bytes: Buffer };

const METHOD_AND_SPACE = /^[A-Z][A-Z-]{1,31} /;
const MAYBE_METHOD = /^[A-Z][A-Z-]{0,31}$/;

/** Pauses the client afterwards; its bytes are in the result and no longer in the stream. */
export function firstFlight(client: Duplex, head: Buffer): Promise<FirstFlight> {
  return new Promise((resolve) => {
    let bytes = head;
    const settle = (flight: FirstFlight): void => {
      client.pause();
      client.removeListener("data", onData);
      for (const event of ["end", "close"]) client.removeListener(event, onEnd);
      resolve(flight);
    };
    const look = (): void => {
      const flight = classify(bytes);
      if (flight) settle(flight);
    };
    const onData = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk]);
      look();
    };
    const onEnd = (): void => settle({ protocol: bytes.length > 0 ? "other" : "none", bytes });
    client.on("data", onData);
    client.once("end", onEnd);
    client.once("close", onEnd);
    if (bytes.length > 0) look();
  });
}

/** Of a handshake, or of an alert or a change of cipher before it, which servers skip. */
const isTlsRecord = ([type = 0, version]: Buffer): boolean => type >= 20 && type <= 22 && version === 3;

/**
 * The hello of SSLv2, by which servers of old also begin TLS: a length with the highest bit set, CLIENT-HELLO, and
 * version 0.2 or 3.x. It cannot tell a host. Null when more bytes are needed.
 */
function isOldHello(bytes: Buffer): boolean | null {
  const [length = 0, , type = 1, major = 3, minor = 2] = bytes;
  if (length < 0x80 || type !== 1 || !(major === 3 || (major === 0 && minor === 2))) return false;
  return bytes.length < 5 ? null : true;
}

/** Servers skip empty lines before a request. */
function requestStart(bytes: Buffer): string {
  const at = bytes.findIndex((byte) => byte !== 13 && byte !== 10);
  return at < 0 ? "" : bytes.toString("latin1", at, at + 33);
}

/** Null when more bytes are needed. */
function classify(bytes: Buffer): FirstFlight | null {
  const hello = readClientHello(bytes);
  if (hello === "more") return bytes.length > HELLO_BYTES_MAX ? { protocol: "unclear", bytes } : null;
  if (hello !== "other") return { protocol: "tls", hello, bytes };
  const isOld = isOldHello(bytes);
  if (isOld === null) return null;
  if (isOld || isTlsRecord(bytes)) return { protocol: "unclear", bytes };
  const start = requestStart(bytes);
  if (METHOD_AND_SPACE.test(start)) return { protocol: "http", bytes };
  if (start !== "" && !MAYBE_METHOD.test(start)) return { protocol: "other", bytes };
  return bytes.length > HELLO_BYTES_MAX ? { protocol: "unclear", bytes } : null;
}
