/**
 * Names and seals chunks with keys derived from the secret key. The name is a keyed hash of the content: equal content
 * has one name, and whoever sees the names learns nothing of it. A sealed chunk opens only under its own name.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { zstdCompress, zstdDecompress } from "node:zlib";
import { PlatformError } from "../../../contract/errors.ts";
import { deriveKey } from "../../../lib/sealed-box.ts";
import { type Gear, gearOf } from "./chunker.ts";

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress) as (
  bytes: Buffer,
  options: { maxOutputLength: number },
) => Promise<Buffer>;

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** First byte of the content: how the rest is stored. */
const PLAIN = 0;
const ZSTD = 1;

export interface ChunkBox {
  gear: Gear;
  nameOf(content: Buffer): string;
  seal(name: string, content: Buffer): Promise<Buffer>;
  /** Refuses what was not sealed under this name with this key, and content beyond `bytesMax`. */
  open(name: string, sealed: Buffer, bytesMax: number): Promise<Buffer>;
}

export function chunkBox(secretKey: Buffer): ChunkBox {
  const naming = deriveKey(secretKey, "backup names");
  const sealing = deriveKey(secretKey, "backup chunks");
  return {
    gear: gearOf(deriveKey(secretKey, "backup cuts")),
    nameOf: (content) => createHmac("sha256", naming).update(content).digest("hex"),
    async seal(name, content) {
      const packed = await compress(content);
      const isSmaller = packed.length < content.length;
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", sealing, nonce).setAAD(Buffer.from(name));
      const head = cipher.update(Buffer.of(isSmaller ? ZSTD : PLAIN));
      const body = cipher.update(isSmaller ? packed : content);
      return Buffer.concat([nonce, head, body, cipher.final(), cipher.getAuthTag()]);
    },
    async open(name, sealed, bytesMax) {
      const [kind, body] = unsealed(sealing, name, sealed);
      if (kind === PLAIN && body.length <= bytesMax) return body;
      if (kind !== ZSTD) throw damaged(name);
      return decompress(body, { maxOutputLength: bytesMax }).catch(() => {
        throw damaged(name);
      });
    },
  };
}

function unsealed(key: Buffer, name: string, sealed: Buffer): [number, Buffer] {
  if (sealed.length <= NONCE_BYTES + TAG_BYTES) throw damaged(name);
  const end = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(name))
    .setAuthTag(sealed.subarray(end));
  try {
    const plain = Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, end)), decipher.final()]);
    return [plain[0] ?? -1, plain.subarray(1)];
  } catch {
    throw damaged(name);
  }
}

const damaged = (name: string): PlatformError =>
  new PlatformError("unprocessable", `The backup is damaged: '${name.slice(0, 80)}' is cut off or was changed.`);
