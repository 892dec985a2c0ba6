/**
 * Like randomWord in lib/ids.ts, but with the global generator: loading node:crypto would cost every sandbox a
 * megabyte.
 */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

export function randomWord(length: number): string {
  let word = "";
  for (const byte of crypto.getRandomValues(new Uint8Array(length))) word += ALPHABET[byte % ALPHABET.length];
  return word;
}
