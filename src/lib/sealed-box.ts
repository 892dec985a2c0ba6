import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** AES-256-GCM over short texts. `context` is authenticated, so a sealed value cannot be moved to another record. */
export interface SealedBox {
  seal(text: string, context: string): string;
  open(sealed: string, context: string): string;
}

export function createSealedBox(key: Buffer): SealedBox {
  if (key.length !== 32) throw new Error("a sealing key has 32 bytes");
  return {
    seal(text, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString("base64url");
    },
    open(sealed, context) {
      const bytes = Buffer.from(sealed, "base64url");
      const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(context))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      return decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, "utf8") + decipher.final("utf8");
    },
  };
}

/** Derives a key for one purpose from the operator's key. */
export const deriveKey = (master: Buffer, purpose: string): Buffer =>
  createHash("sha256").update(purpose).update("\0").update(master).digest();

/** Identifies a key without revealing it. */
export const fingerprintOf = (key: Buffer): string => deriveKey(key, "fingerprint").toString("hex").slice(0, 16);
