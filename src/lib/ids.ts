import { randomBytes, randomFillSync } from "node:crypto";

/**
 * Identifiers are UUID version 7: 48 bits of creation time, then 12 bits that count up within a millisecond.
 * Ordering by uid is therefore ordering by creation, and one index serves both.
 */
const SEQUENCE_MAX = 0xfff;
/** Random bytes are fetched in bulk: one call to the system for many ids. */
const pool = Buffer.alloc(8 * 256);
let poolAt = pool.length;
let lastMs = 0;
let sequence = 0;

export function uuidv7(nowMs: number): string {
  // The clock may step back and a millisecond may overflow; the ids of one process still only go up.
  if (nowMs > lastMs) {
    lastMs = nowMs;
    sequence = randomEight().readUInt16BE(0) & 0x3ff;
  } else if (sequence < SEQUENCE_MAX) {
    sequence += 1;
  } else {
    lastMs += 1;
    sequence = 0;
  }
  const random = randomEight();
  const time = lastMs.toString(16).padStart(12, "0");
  const tail = random.toString("hex");
  const variant = (((random[0] ?? 0) & 0x3f) | 0x80).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${sequence.toString(16).padStart(3, "0")}-${variant}${tail.slice(2, 4)}-${tail.slice(4)}`;
}

function randomEight(): Buffer {
  if (poolAt >= pool.length) {
    randomFillSync(pool);
    poolAt = 0;
  }
  poolAt += 8;
  return pool.subarray(poolAt - 8, poolAt);
}

/** The creation time that a uid carries. */
export const timeOfUid = (uid: string): number => Number.parseInt(uid.slice(0, 8) + uid.slice(9, 13), 16);

/** The 12-bit counter that a uid carries. */
export const sequenceOfUid = (uid: string): number => Number.parseInt(uid.slice(15, 18), 16);

const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

/** A short random word of lower-case letters and digits: process names, generated resource names. */
export function randomWord(length: number): string {
  let word = "";
  for (const byte of randomBytes(length)) word += ALPHABET[byte % ALPHABET.length];
  return word;
}

/** An unguessable secret: 32 bytes, URL-safe. */
export const randomSecret = (): string => randomBytes(32).toString("base64url");
