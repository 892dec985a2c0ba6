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

export function redactor(secrets: readonly string[]): Transform {
  // One character for each byte, so that no border of chunks cuts a character.
  const words = secrets.flatMap((secret) => {
    const plain = Buffer.from(secret).toString("latin1");
    const escaped = Buffer.from(JSON.stringify(secret).slice(1, -1)).toString("latin1");
    return plain === escaped ? [plain] : [escaped, plain];
  });
  const kept = Math.max(0, ...words.map(({ length }) => length)) - 1;
  let rest = "";
  return new Transform({
    transform(chunk: Buffer, _, done) {
      const text = redactText(rest + chunk.toString("latin1"), words);
      const cut = startOfRest(text, words, kept);
      rest = text.slice(cut);
      done(null, Buffer.from(text.slice(0, cut), "latin1"));
    },
    flush(done) {
      done(null, Buffer.from(rest, "latin1"));
    },
  });
}

/** Only an end that may be the beginning of a secret waits for the next chunk: a stream of events is not held up. */
function startOfRest(text: string, words: readonly string[], kept: number): number {
  for (let at = Math.max(0, text.length - kept); at < text.length; at++) {
    const end = text.slice(at);
    if (words.some((word) => word.startsWith(end))) return at;
  }
  return text.length;
}
