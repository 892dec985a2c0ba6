/**
 * A text that comes in pieces, redacted as if it were whole. The end of the text is held back, because what has to be
 * replaced may go on in the next piece. A piece is let go once no match can reach from it into text that is to come.
 */
import type { Pattern } from "./patterns.ts";
import { redactText } from "./redaction.ts";

/** Gets the text that stands for the piece. */
export type LetGo = (text: string) => void;

interface Piece {
  text: string;
  letGo: LetGo;
}

/** Longer than any match with spaces in it that ends later: a word of 100 characters, the first line of a key. */
const HELD_CHARACTERS = 128;
/** A run without a space is held as a whole up to this length: no address, number or token is longer. */
const RUN_MAX_CHARACTERS = 4096;
/** A match that goes on and on is replaced here, and looked for anew behind it. */
const PENDING_MAX_CHARACTERS = 16 * 1024;
/** A search goes over all held text, so it is not repeated for every single character: the longer, the rarer. */
const SEARCH_EVERY_CHARACTERS = 32;
const SEARCH_EVERY_PART = 1 / 4;

export class HeldText {
  readonly #patterns: readonly Pattern[];
  #pieces: Piece[] = [];
  #pending = "";
  #searchAt = 0;

  constructor(patterns: readonly Pattern[]) {
    this.#patterns = patterns;
  }

  push(text: string, letGo: LetGo): void {
    if (text === "") {
      letGo(text);
      return;
    }
    this.#pieces.push({ text, letGo });
    this.#pending += text;
    if (this.#pending.length <= HELD_CHARACTERS || this.#pending.length < this.#searchAt) return;
    const { length } = this.#pending;
    this.#searchAt = length + Math.max(SEARCH_EVERY_CHARACTERS, length * SEARCH_EVERY_PART);
    const cut = this.#cut();
    if (cut > 0) this.#letGo(cut);
  }

  /** The text is complete. */
  end(): void {
    this.#letGo(this.#pending.length);
  }

  /** Where the text can be divided without changing what is replaced; 0 for nowhere yet. */
  #cut(): number {
    const text = this.#pending;
    if (text.length > PENDING_MAX_CHARACTERS) return text.length;
    const latest = text.length - HELD_CHARACTERS;
    const space = lastSpace(text, latest);
    const cut = space > 0 ? space : latest > RUN_MAX_CHARACTERS ? latest : 0;
    if (cut < (this.#pieces[0]?.text.length ?? 0)) return 0;
    const parts = this.#redacted(text.slice(0, cut)) + this.#redacted(text.slice(cut));
    return parts === this.#redacted(text) ? cut : 0;
  }

  #letGo(cut: number): void {
    const before = this.#pending.slice(0, cut);
    const after = this.#redacted(before);
    const changed = after !== before;
    let left = changed ? after : null;
    let at = 0;
    while (this.#pieces[0] && at + this.#pieces[0].text.length <= cut) {
      const { text, letGo } = this.#pieces.shift() as Piece;
      at += text.length;
      // The first piece gets the whole text when parts of the text were replaced: the pieces do not line up any more.
      letGo(left ?? (changed ? "" : text));
      if (left !== null) left = "";
    }
    const next = this.#pieces[0];
    // A piece that was cut in two keeps the rest of its text.
    if (next && changed) next.text = next.text.slice(cut - at);
    this.#pending = this.#pending.slice(changed ? cut : at);
    this.#searchAt = 0;
  }

  #redacted(text: string): string {
    return redactText(text, this.#patterns).text;
  }
}

/** Offset behind the last white space that ends before `before`; 0 when there is none. */
function lastSpace(text: string, before: number): number {
  for (let at = before - 1; at > 0; at -= 1) if (SPACE.test(text.charAt(at))) return at + 1;
  return 0;
}

const SPACE = /\s/;
