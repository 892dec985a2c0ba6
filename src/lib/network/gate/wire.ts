/**
 * The first lines on a TCP connection between a server and the daemon of a workload, in either direction. The side that
 * accepts speaks first; each side proves that it knows the token, which is never sent:
 *
 *   accepts     BERTH <nonce>
 *   connects    <purpose> <nonce> <proof>
 *   accepts     OK <proof>            or, after a right proof, ERR <reason>
 *
 * Raw bytes follow in both directions. A wrong proof is answered by hanging up. A purpose is one word: where the
 * connection leads, and for whom.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

export const GATE_LINE_BYTES_MAX = 512;
/** Time for all lines of one connection. */
export const GATE_WAIT_MS = 10_000;

const NONCE = /^[0-9a-f]{32}$/;

export const newNonce = (): string => randomBytes(16).toString("hex");

type Side = "accepts" | "connects";

const proofOf = (token: string, side: Side, purpose: string, nonces: readonly [string, string]): string =>
  createHmac("sha256", token)
    .update([side, purpose, ...nonces].join("\n"))
    .digest("hex");

export const helloLine = (nonce: string): string => `BERTH ${nonce}\n`;

/** Null for anything else. */
export function nonceIn(line: string): string | null {
  const [word, nonce = "", ...rest] = line.split(" ");
  return word === "BERTH" && NONCE.test(nonce) && rest.length === 0 ? nonce : null;
}

export const purposeLine = (token: string, purpose: string, hello: string, own: string): string =>
  `${purpose} ${own} ${proofOf(token, "connects", purpose, [hello, own])}\n`;

export interface Claimed {
  purpose: string;
  nonce: string;
  proof: string;
}

/** Null for anything else. The proof is still to be checked. */
export function claimIn(line: string): Claimed | null {
  const [purpose = "", nonce = "", proof = "", ...rest] = line.split(" ");
  return purpose !== "" && NONCE.test(nonce) && rest.length === 0 ? { purpose, nonce, proof } : null;
}

export const isProven = (token: string, { purpose, nonce, proof }: Claimed, hello: string): boolean =>
  isSame(proof, proofOf(token, "connects", purpose, [hello, nonce]));

export const okLine = (token: string, { purpose, nonce }: Claimed, hello: string): string =>
  `OK ${proofOf(token, "accepts", purpose, [hello, nonce])}\n`;

export const errLine = (reason: string): string => `ERR ${reason.replace(/[\r\n]/g, " ")}\n`;

/** What the accepting side answered: a reason of its own, a right proof (null), or nonsense. */
export function refusalIn(line: string, token: string, purpose: string, hello: string, own: string): string | null {
  if (line.startsWith("ERR ")) return line.slice(4);
  const expected = `OK ${proofOf(token, "accepts", purpose, [hello, own])}`;
  return isSame(line, expected) ? null : "the other side is not the workload";
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
