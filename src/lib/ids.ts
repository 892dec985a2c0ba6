import { randomBytes, randomFillSync } from "node:crypto";

/**
 * Identifiers are UUID version 7: the leading 48 bits are the creation time, so ordering by uid is ordering by
 * creation and one index serves both.
 */
const random = Buffer.alloc(10);
let lastMs = 0;
let sequence = 0;

export function uuidv7(nowMs: number): string {
  // Ids of one millisecond count up, so creation order survives within it.
  if (nowMs === lastMs && sequence < 0xfff) sequence += 1;
  else sequence = randomFillSync(random, 8, 2).readUInt16BE(8) & 0x3ff;
  lastMs = nowMs;
  randomFillSync(random, 0, 8);
  const time = nowMs.toString(16).padStart(12, "0");
  const tail = random.toString("hex", 0, 8);
  const variant = ((random[0] ?? 0) & 0x3f) | 0x80;
  return `${time.slice(0, 8)}-${time.slice(8)}-7${sequence.toString(16).padStart(3, "0")}-${variant.toString(16)}${tail.slice(2, 4)}-${tail.slice(4)}`;
}

const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

/** A short random word of lower-case letters and digits: process names, generated resource names. */
export function randomWord(length: number): string {
  let word = "";
  for (const byte of randomBytes(length)) word += ALPHABET[byte % ALPHABET.length];
  return word;
}

/** An unguessable secret: 32 bytes, URL-safe. */
export const randomSecret = (): string => randomBytes(32).toString("base64url");
