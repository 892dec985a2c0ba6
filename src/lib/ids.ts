import { randomBytes } from "node:crypto";

/**
 * Identifiers are UUID version 7: 48 bits of creation time, then 12 bits that count up within a millisecond.
 * Ordering by uid is therefore ordering by creation, and one index serves both.
 */
const SEQUENCE_MAX = 0xfff;
/** Random digits are fetched in bulk: one system call for many ids. */
const POOL_BYTES = 8 * 256;
let pool = "";
let poolAt = 0;
let lastMs = 0;
let lastText = "";
let sequence = 0;

export function uuidv7(nowMs: number): string {
  // The clock may step back and a millisecond may overflow; the ids of one process still only increase.
  if (nowMs > lastMs) {
    startAt(nowMs);
    sequence = Number.parseInt(randomDigits().slice(0, 4), 16) & 0x3ff;
  } else if (sequence < SEQUENCE_MAX) {
    sequence += 1;
  } else {
    startAt(lastMs + 1);
    sequence = 0;
  }
  const random = randomDigits();
  const variant = VARIANTS[Number.parseInt(random[0] as string, 16) & 3];
  return `${lastText}${HEX[sequence >> 8]}${HEX[(sequence >> 4) & 15]}${HEX[sequence & 15]}-${variant}${random.slice(1, 4)}-${random.slice(4)}`;
}

const HEX = "0123456789abcdef";
const VARIANTS = "89ab";

function startAt(ms: number): void {
  lastMs = ms;
  const time = ms.toString(16).padStart(12, "0");
  lastText = `${time.slice(0, 8)}-${time.slice(8)}-7`;
}

/** 16 random hex digits. */
function randomDigits(): string {
  if (poolAt >= pool.length) {
    pool = randomBytes(POOL_BYTES).toString("hex");
    poolAt = 0;
  }
  poolAt += 16;
  return pool.slice(poolAt - 16, poolAt);
}

/** The creation time that a uid carries. */
export const timeOfUid = (uid: string): number => Number.parseInt(uid.slice(0, 8) + uid.slice(9, 13), 16);

/** Smaller than every uid of this time, and greater than every uid of an earlier one. */
export const firstUidAt = (timeMs: number): string => {
  const hex = Math.min(Math.max(0, Math.floor(timeMs)), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-0000-000000000000`;
};

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
