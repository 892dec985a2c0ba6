/** Random words. Node 18 has no global `crypto`; these words are names, not secrets. */

const LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";

export function randomWord(length: number): string {
  let word = "";
  while (word.length < length) word += LETTERS.charAt(Math.floor(Math.random() * LETTERS.length));
  return word;
}

/** Long enough that no two calls of a workspace share one. */
export const idempotencyKey = (): string => globalThis.crypto?.randomUUID?.() ?? randomWord(32);
