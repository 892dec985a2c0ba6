/** Signed messages of ACME (RFC 8555, 6.2): flattened JSON, signed with a key on the curve P-256. */
import { createHash, createPrivateKey, generateKeyPairSync, sign } from "node:crypto";

export interface Protected {
  url: string;
  nonce: string;
  /** URL of the account; absent for the message that makes the account, which carries the public key. */
  account?: string | undefined;
}

export function newAccountKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** `payload`: null for a message that only reads. */
export function signedMessage(key: string, { url, nonce, account }: Protected, payload: object | null): string {
  const head = { alg: "ES256", nonce, url, ...(account === undefined ? { jwk: publicKeyOf(key) } : { kid: account }) };
  const parts = [encoded(JSON.stringify(head)), payload === null ? "" : encoded(JSON.stringify(payload))];
  const signature = sign("sha256", Buffer.from(parts.join(".")), {
    key: createPrivateKey(key),
    dsaEncoding: "ieee-p1363",
  });
  return JSON.stringify({ protected: parts[0], payload: parts[1], signature: signature.toString("base64url") });
}

/** What a challenge has to be answered with: the token, bound to the account (RFC 8555, 8.1). */
export const keyAuthorization = (key: string, token: string): string =>
  `${token}.${createHash("sha256")
    .update(JSON.stringify(publicKeyOf(key)))
    .digest("base64url")}`;

/** With its members in the order that a thumbprint needs (RFC 7638). */
function publicKeyOf(key: string): object {
  const { crv, kty, x, y } = createPrivateKey(key).export({ format: "jwk" });
  return { crv, kty, x, y };
}

const encoded = (text: string): string => Buffer.from(text).toString("base64url");
