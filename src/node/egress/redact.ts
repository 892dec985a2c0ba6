/** Replaces secrets in a stream, also those that are cut by the border of two chunks. */
import { Transform } from "node:stream";
import type { FilledRoute } from "../../lib/network/egress/routes.ts";
import { headerOf } from "./headers.ts";
import { refusal } from "./refusal.ts";

export const REDACTED = "[redacted]";

/** Secrets shorter than this would replace ordinary text. */
const SECRET_LENGTH_MIN = 4;

export const redactable = (secrets: readonly string[]): string[] =>
  secrets.filter((secret) => secret.length >= SECRET_LENGTH_MIN).sort((a, b) => b.length - a.length);

/** The secrets that the answer must not show. */
export const redactedIn = (routes: readonly FilledRoute[]): string[] =>
  redactable(
    routes.flatMap(({ redact, secrets, identities }) =>
      redact ? [...Object.values(secrets), ...Object.values(identities)] : [],
    ),
  );

/** Headers of a request whose answer could not be searched for secrets. */
export const UNREADABLE = /^(?:accept-encoding|grpc-accept-encoding|range|if-range)$/i;

export const UNREADABLE_ANSWER = refusal(
  502,
  "answer_not_readable",
  "The answer is compressed, so its secrets cannot be redacted, which this route asks for.",
);

/** Whether the body of an answer with this head cannot be searched. */
export const hidesSecrets = (rawHeaders: readonly string[]): boolean =>
  headerOf(rawHeaders, "content-encoding") !== undefined ||
  (headerOf(rawHeaders, "grpc-encoding") ?? "identity") !== "identity";

export function redactText(text: string, secrets: readonly string[]): string {
  return secrets.reduce((left, secret) => left.replaceAll(secret, REDACTED), text);
}

/** An answer that ends within a secret shows less than this many characters of the secret. */
const TELLING_LENGTH = 8;

/** `keepsLength`: for a format that tells the lengths of its texts beforehand, such as gRPC. */
export function redactor(secrets: readonly string[], { keepsLength = false } = {}): Transform {
  const shownFor = (word: string): string => (keepsLength ? "*".repeat(word.length) : REDACTED);
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
      const { shown, end } = redactUntil(text, startOfRest(text, words, kept), pattern, shownFor);
      rest = text.slice(end);
      done(null, Buffer.from(shown, "latin1"));
    },
    flush(done) {
      const isTelling = words.some((word) => word.startsWith(rest) && rest.length >= tellingLength(word));
      done(null, Buffer.from(isTelling ? shownFor(rest) : rest.replace(pattern, shownFor), "latin1"));
    },
  });
}

const literal = (word: string): string => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

const tellingLength = ({ length }: string): number => Math.min(TELLING_LENGTH, Math.ceil(length / 2));

/** Replaces the words that begin before `cut`. Later bytes may make a longer word of what begins at `cut`. */
function redactUntil(
  text: string,
  cut: number,
  pattern: RegExp,
  shownFor: (word: string) => string,
): { shown: string; end: number } {
  let [shown, end] = ["", 0];
  for (const { 0: word, index } of text.matchAll(pattern)) {
    if (index >= cut) break;
    shown += text.slice(end, index) + shownFor(word);
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
