/**
 * The header of the PROXY protocol, versions 1 and 2: a proxy that passes connections on writes it in front of them, to
 * say whose connection it is (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt).
 */
import { isIPv4, isIPv6 } from "node:net";

export interface ProxyHeader {
  /** Bytes of the header; the connection begins behind them. */
  length: number;
  /** Null when the proxy speaks for itself, as in its health checks, or knows no address. */
  client: { address: string; port: number } | null;
}

const V2_SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
const V2_FIXED_BYTES = 16;
/** Addresses need 36 bytes; the rest is room for what proxies add (certificates, identifiers). */
const V2_REST_MAX = 4096;
const V2_COMMANDS = { local: 0x20, proxy: 0x21 } as const;
/** By address family and transport: bytes of one address. */
const V2_ADDRESS_BYTES: Readonly<Record<number, number>> = { 17: 4, 33: 16 };

const V1_START = "PROXY ";
const V1_BYTES_MAX = 107;
const V1_LINE = /^PROXY (?:UNKNOWN(?: [\x20-\x7e]*)?|(TCP[46]) (\S+) \S+ (\d{1,5}) \d{1,5})$/;

/** `more`: what is there begins a header. `none`: this is no header. */
export function readProxyHeader(bytes: Buffer): ProxyHeader | "more" | "none" {
  if (startsAlike(bytes, V2_SIGNATURE)) return readV2(bytes);
  return startsAlike(bytes, Buffer.from(V1_START, "latin1")) ? readV1(bytes) : "none";
}

const startsAlike = (bytes: Buffer, start: Buffer): boolean => {
  const length = Math.min(bytes.length, start.length);
  return bytes.compare(start, 0, length, 0, length) === 0;
};

function readV1(bytes: Buffer): ProxyHeader | "more" | "none" {
  const text = bytes.toString("latin1", 0, V1_BYTES_MAX);
  const end = text.indexOf("\r\n");
  if (end < 0) return bytes.length < V1_BYTES_MAX ? "more" : "none";
  const match = V1_LINE.exec(text.slice(0, end));
  if (!match) return "none";
  const [, family, address = "", port] = match;
  if (family === undefined) return { length: end + 2, client: null };
  const isOfFamily = family === "TCP4" ? isIPv4(address) : isIPv6(address);
  return isOfFamily && Number(port) <= 65535 ? { length: end + 2, client: { address, port: Number(port) } } : "none";
}

function readV2(bytes: Buffer): ProxyHeader | "more" | "none" {
  if (bytes.length < V2_FIXED_BYTES) return "more";
  const [command = 0, family = 0] = bytes.subarray(V2_SIGNATURE.length);
  const rest = bytes.readUInt16BE(V2_FIXED_BYTES - 2);
  if (rest > V2_REST_MAX || (command !== V2_COMMANDS.local && command !== V2_COMMANDS.proxy)) return "none";
  const length = V2_FIXED_BYTES + rest;
  if (bytes.length < length) return "more";
  const size = V2_ADDRESS_BYTES[family];
  if (command === V2_COMMANDS.local || size === undefined) return { length, client: null };
  if (rest < 2 * size + 4) return "none";
  const source = bytes.subarray(V2_FIXED_BYTES, V2_FIXED_BYTES + size);
  return { length, client: { address: textOf(source), port: bytes.readUInt16BE(V2_FIXED_BYTES + 2 * size) } };
}

function textOf(address: Buffer): string {
  if (address.length === 4) return address.join(".");
  return Array.from({ length: 8 }, (_, at) => address.readUInt16BE(2 * at).toString(16)).join(":");
}
