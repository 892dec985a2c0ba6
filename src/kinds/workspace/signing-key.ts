import { createPublicKey } from "node:crypto";
import { z } from "zod";

const PEM_MAX = 4096;
const TYPES: ReadonlySet<string | undefined> = new Set(["ec", "ed25519", "rsa"]);

/** A public key as `cosign generate-key-pair` writes it. A private key is refused: it would be shown to every member. */
export const signingKey = z
  .string()
  .max(PEM_MAX)
  .refine(isPublicKey, "must be a public key in PEM (EC, Ed25519 or RSA), as in cosign.pub");

function isPublicKey(pem: string): boolean {
  if (!/^\s*-----BEGIN PUBLIC KEY-----/.test(pem)) return false;
  try {
    return TYPES.has(createPublicKey(pem).asymmetricKeyType);
  } catch {
    return false;
  }
}
