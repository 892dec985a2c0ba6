/**
 * What redaction looks for. Every expression takes time in proportion to the text, whatever the text is: it begins only
 * where a run of its characters begins, or its length is bounded, and no two parts of it can match the same characters.
 */
import type { RedactionPattern } from "../../contract/model-guardrails.ts";

export interface Pattern {
  /** The text with every match replaced. */
  apply(text: string): Replaced;
}

export interface Replaced {
  text: string;
  count: number;
}

/** Replaces each match by what `replace` makes of it; null for a match that only looks like one. */
export function replacing(find: RegExp, replace: (match: string) => string | null): Pattern {
  return {
    apply(text) {
      let count = 0;
      const left = text.replace(find, (match) => {
        const instead = replace(match);
        if (instead !== null) count += 1;
        return instead ?? match;
      });
      return { text: left, count };
    },
  };
}

const KEYS = [
  "(?<![A-Za-z0-9_-])(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}",
  "(?<![A-Za-z0-9_])gh[pousr]_[A-Za-z0-9]{30,}",
  "(?<![A-Za-z0-9_])github_pat_[A-Za-z0-9_]{30,}",
  "(?<![A-Za-z0-9])(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Z])",
  "(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{35}",
  "(?<![A-Za-z0-9])xox[abeprs]-[A-Za-z0-9-]{10,}",
  // A signed token.
  "(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\\.eyJ[A-Za-z0-9_-]{10,}\\.[A-Za-z0-9_-]{10,}",
  // Up to the first character that is no part of a key; the backslash is for keys inside JSON inside a string.
  "-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----[A-Za-z0-9+/=\\s\\\\]*(?:-----END [A-Z ]{0,32}PRIVATE KEY-----)?",
];

export const PATTERNS: Record<RedactionPattern, Pattern> = {
  email: replacing(/(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+/gu, () => "[EMAIL]"),
  card: { apply: withoutCards },
  iban: replacing(
    /(?<![A-Z0-9])[A-Z]{2}\d{2}(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?)(?![A-Z0-9])/g,
    withoutIban,
  ),
  ipv4: replacing(/(?<![\d.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?!\d|\.\d)/g, (match) =>
    match.split(".").every((part) => Number(part) <= 255) ? "[IPV4]" : null,
  ),
  "us-ssn": replacing(/(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)/g, () => "[US-SSN]"),
  "api-key": replacing(new RegExp(KEYS.join("|"), "g"), () => "[API-KEY]"),
};

const CARD_DIGITS_MIN = 13;
const CARD_DIGITS_MAX = 19;
/** Issuers write 4-4-4-4, 4-6-5, 4-3-3-3, 4-4-4-4-3: the first of several groups has four digits. */
const CARD_GROUPS = /(?<!\d)(?:\d{13,19}|\d{4}(?:[ -]\d{3,6}){2,4})(?!\d)/g;

/** Numbers of something else may stand before and behind a card's: every group of digits may begin one. */
function withoutCards(text: string): Replaced {
  const parts: string[] = [];
  let kept = 0;
  let count = 0;
  const find = new RegExp(CARD_GROUPS);
  for (let found = find.exec(text); found; found = find.exec(text)) {
    const length = cardLength(found[0]);
    if (length === null) {
      find.lastIndex = found.index + groupEnd(found[0], 0);
      continue;
    }
    parts.push(text.slice(kept, found.index), "[CARD]");
    count += 1;
    kept = found.index + length;
    find.lastIndex = kept;
  }
  return { text: count === 0 ? text : parts.join("") + text.slice(kept), count };
}

/** Length of the card number that these groups begin with; null when they begin with none. */
function cardLength(groups: string): number | null {
  let digits = "";
  for (let at = 0; at < groups.length; ) {
    const end = groupEnd(groups, at);
    digits += groups.slice(at, end);
    if (digits.length > CARD_DIGITS_MAX) return null;
    if (digits.length >= CARD_DIGITS_MIN && isLuhn(digits)) return end;
    at = end + 1;
  }
  return null;
}

function groupEnd(groups: string, from: number): number {
  let at = from;
  while (at < groups.length && isDigit(groups.charCodeAt(at))) at += 1;
  return at;
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57;

function isLuhn(digits: string): boolean {
  let sum = 0;
  for (let n = 0; n < digits.length; n += 1) {
    const digit = digits.charCodeAt(digits.length - 1 - n) - 48;
    const counted = n % 2 === 1 ? digit * 2 : digit;
    sum += counted > 9 ? counted - 9 : counted;
  }
  // Zeros alone pass the check, and are no card.
  return sum > 0 && sum % 10 === 0;
}

const IBAN_LENGTH_MIN = 15;

/** Words in capitals may follow the number: groups are taken off the end until the check digits agree. */
function withoutIban(match: string): string | null {
  const groups = match.split(" ");
  for (let taken = groups.length; taken > 0; taken -= 1) {
    const iban = groups.slice(0, taken).join("");
    if (iban.length < IBAN_LENGTH_MIN) break;
    if (remainder97(iban) === 1) return ["[IBAN]", ...groups.slice(taken)].join(" ");
  }
  return null;
}

/** Of an IBAN as ISO 7064 counts it: its first four characters last, letters as 10 to 35. */
function remainder97(iban: string): number {
  let rest = 0;
  for (let n = 0; n < iban.length; n += 1) {
    const code = iban.charCodeAt((n + 4) % iban.length);
    rest = (isDigit(code) ? rest * 10 + code - 48 : rest * 100 + code - 55) % 97;
  }
  return rest;
}
