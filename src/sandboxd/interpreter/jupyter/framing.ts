/**
 * How messages travel in a WebSocket. Without a subprotocol a message is JSON, and binary buffers come behind an index
 * of big-endian offsets. With `v1.kernel.websocket.jupyter.org` every part has its offset in a little-endian index.
 * Kernels here have no use for binary buffers: they are not read and not sent.
 */
import { type KernelMessage, type KernelRequest, requestOf } from "./message.ts";

export const V1_PROTOCOL = "v1.kernel.websocket.jupyter.org";

/** Channel, header, parent header, metadata, content. */
const V1_PARTS = 5;
/** Offsets in the index of a message; each binary buffer has one. */
const OFFSETS_MAX = 1_024;

export interface Framing {
  /** Text of JSON, or bytes. */
  encode(message: KernelMessage): string | Buffer;
  /** Null for bytes that are no message. */
  decode(bytes: string | Buffer): KernelRequest | null;
}

export const DEFAULT_FRAMING: Framing = {
  encode: (message) =>
    JSON.stringify({ ...message, msg_id: message.header.msg_id, msg_type: message.header.msg_type, buffers: [] }),
  decode: (bytes) => requestOf(parsed(typeof bytes === "string" ? bytes : firstOf(bytes))),
};

export const V1_FRAMING: Framing = {
  encode(message) {
    const parts = [
      message.channel,
      ...[message.header, message.parent_header, message.metadata, message.content].map((part) => JSON.stringify(part)),
    ].map((part) => Buffer.from(part));
    const index = Buffer.alloc(8 * (parts.length + 2));
    index.writeBigUInt64LE(BigInt(parts.length + 1), 0);
    let offset = index.byteLength;
    for (const [place, part] of parts.entries()) {
      index.writeBigUInt64LE(BigInt(offset), 8 * (place + 1));
      offset += part.byteLength;
    }
    index.writeBigUInt64LE(BigInt(offset), 8 * (parts.length + 1));
    return Buffer.concat([index, ...parts]);
  },
  decode(bytes) {
    const [channel, header, , , content] = typeof bytes === "string" ? [] : partsOf(bytes);
    if (channel === undefined || header === undefined || content === undefined) return null;
    return requestOf({ header: parsed(header), content: parsed(content) }, channel);
  },
};

/** The first parts of a v1 message as text; none when an offset points elsewhere. */
function partsOf(bytes: Buffer): string[] {
  if (bytes.byteLength < 8) return [];
  const count = Number(bytes.readBigUInt64LE(0));
  if (count <= V1_PARTS || count > OFFSETS_MAX || bytes.byteLength < 8 * (count + 1)) return [];
  const offsets = Array.from({ length: V1_PARTS + 1 }, (_, place) => Number(bytes.readBigUInt64LE(8 * (place + 1))));
  return offsets.slice(1).map((end, place) => bytes.toString("utf8", offsets[place], end));
}

/** The JSON of a message with binary buffers, which comes first. */
function firstOf(bytes: Buffer): string {
  if (bytes.byteLength < 8) return "";
  const count = bytes.readUInt32BE(0);
  if (count < 1 || count > OFFSETS_MAX || bytes.byteLength < 4 * (count + 1)) return "";
  return bytes.toString("utf8", bytes.readUInt32BE(4), count > 1 ? bytes.readUInt32BE(8) : bytes.byteLength);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
