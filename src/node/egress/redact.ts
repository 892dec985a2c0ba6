/** Replaces secrets in a stream, also those that are cut by the border of two chunks. */
import { Transform } from "node:stream";

export const REDACTED = "[redacted]";

/** Secrets shorter than this would replace ordinary text. */
const SECRET_LENGTH_MIN = 4;

export const redactable = (secrets: readonly string[]): string[] =>
  secrets.filter((secret) => secret.length >= SECRET_LENGTH_MIN).sort((a, b) => b.length - a.length);

export function redactText(text: string, secrets: readonly string[]): string {
  return secrets.reduce((left, secret) => left.replaceAll(secret, REDACTED), text);
}

/** An answer that ends within a secret shows less than this many characters of the secret. */
const TELLING_LENGTH = 8;

export function redactor(secrets: readonly string[]): Transform {
  // One character for each byte, so that no border of chunks cuts a character.
  const words = secrets
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
    .map((secret) => Buffer.from(secret).toString("latin1"))
    .sort((a, b) => b.length - a.length);
  const pattern = new RegExp(words.map(literal).join("|") || "(?!)", "g");
  const kept = Math.max(0, ...words.map(({ length }) => length)) - 1;
  let rest = "";
  return new Transform({
    transform(chunk: Buffer, _, done) {
      const text = rest + chunk.toString("latin1");
      const { shown, end } = redactUntil(text, startOfRest(text, words, kept), pattern);
      rest = text.slice(end);
      done(null, Buffer.from(shown, "latin1"));
    },
    flush(done) {
      const isTelling = words.some((word) => word.startsWith(rest) && rest.length >= tellingLength(word));
      done(null, Buffer.from(isTelling ? REDACTED : redactText(rest, words), "latin1"));
    },
  });
}

const literal = (word: string): string => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

const tellingLength = ({ length }: string): number => Math.min(TELLING_LENGTH, Math.ceil(length / 2));

/** Replaces the words that begin before `cut`. Later bytes may make a longer word of what begins at `cut`. */
function redactUntil(text: string, cut: number, pattern: RegExp): { shown: string; end: number } {
  let [shown, end] = ["", 0];
  for (const { 0: word, index } of text.matchAll(pattern)) {
    if (index >= cut) break;
    shown += text.slice(end, index) + REDACTED;
    end = index + word.length;
  }
  return { shown: shown + text.slice(end, cut), end: Math.max(end, cut) };
}

/** Only an end that may be the beginning of a secret waits for the next chunk: a stream of events is not held up. */
function startOfRest(text: string, words: readonly string[], kept: number): number {
  for (let at = Math.max(0, text.length - kept); at < text.length; at++) {
    const end = text.slice(at);
    if (words.some((word) => word.startsWith(end))) return at;
  }
  return text.length;
}
