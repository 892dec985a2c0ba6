/**
 * Addresses of files that E2B's clients sign (`downloadUrl`, `uploadUrl`): whoever has the address reads or writes that
 * one file, without a token. The signature is a hash of the file, the operation and the signer's access token, and does not
 * say whose that is: it is checked against the token of the API key that made the sandbox.
 */
import { hash, timingSafeEqual } from "node:crypto";

export interface SignedFile {
  signature: Buffer;
  /** Signed, but for the token: the parts in front of it, and the part behind it. */
  before: string;
  after: string;
}

/** Decoded length of the signature. */
const SIGNATURE_BYTES = 32;
const SIGNATURE = /^v1_([A-Za-z0-9+/]{43})$/;
const SECONDS = /^\d{1,12}$/;
const OPERATIONS: Readonly<Record<string, string>> = { GET: "read", HEAD: "read", POST: "write", PUT: "write" };
const ENDPOINT = /^\/files\/?\?/;

/** Null for an address that nobody signed, or whose time is over. */
export function signedFile(method: string, target: string, nowMs: number): SignedFile | null {
  const operation = OPERATIONS[method];
  if (operation === undefined || !ENDPOINT.test(target)) return null;
  const query = new URLSearchParams(target.slice(target.indexOf("?")));
  const [, signature] = SIGNATURE.exec(query.get("signature") ?? "") ?? [];
  const until = query.get("signature_expiration");
  // One file is signed: a second name would be another reader's choice.
  if (signature === undefined || query.getAll("path").length > 1 || query.getAll("username").length > 1) return null;
  if (until !== null && !(SECONDS.test(until) && nowMs < Number(until) * 1000)) return null;
  return {
    signature: Buffer.from(signature, "base64"),
    before: `${query.get("path") ?? ""}:${operation}:${query.get("username") ?? ""}:`,
    after: until === null ? "" : `:${until}`,
  };
}

export function isSignedWith({ signature, before, after }: SignedFile, token: string): boolean {
  const right = hash("sha256", `${before}${token}${after}`, "buffer");
  return signature.length === SIGNATURE_BYTES && timingSafeEqual(signature, right);
}
