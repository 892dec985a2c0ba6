/** Words of instructions: quotes, escapes, variables, lists and pairs, as Docker reads them. */
import { DockerfileRefused, shown } from "./refusal.ts";

/** The value of a variable; undefined when there is none. */
export type Lookup = (name: string) => string | undefined;

export interface Reading {
  lookup: Lookup;
  escapeChar: string;
  line: number;
  /** Told of the characters that words become. Throws when a stage has had enough of them. */
  spend?: (chars: number) => void;
  /** How deep in the defaults of variables a word is. */
  depth?: number;
}

/** Deepest `${A:-${B:-…}}`. */
const DEPTH_MAX = 20;
/** Longest word after its variables are replaced: a variable may hold itself many times. */
const EXPANDED_MAX = 256 * 1024;

/** Removes quotes and escapes and replaces variables. */
export function expand(word: string, reading: Reading): string {
  const { escapeChar } = reading;
  let [out, quote] = ["", ""];
  for (let at = 0; at < word.length; ) {
    const char = word[at] ?? "";
    const next = word[at + 1];
    if (quote === "'") {
      if (char === "'") quote = "";
      else out += char;
      at += 1;
    } else if (char === escapeChar && next !== undefined) {
      const isKept = quote === '"' && !['"', "$", escapeChar].includes(next);
      out += isKept ? char + next : next;
      at += 2;
    } else if (char === "'" && quote === "") {
      quote = "'";
      at += 1;
    } else if (char === '"') {
      quote = quote === "" ? '"' : "";
      at += 1;
    } else if (char === "$") {
      const { value, end } = variableAt(word, at, reading);
      out += value;
      at = end;
    } else {
      out += char;
      at += 1;
    }
    if (out.length > EXPANDED_MAX) throw new DockerfileRefused(reading.line, "a value becomes too long.");
  }
  if (quote !== "") throw new DockerfileRefused(reading.line, `${shown(word)} has a quote without an end.`);
  reading.spend?.(out.length);
  return out;
}

/** Replaces variables and leaves quotes as they are: the content of a here-document. */
export function expandContent(content: string, reading: Reading): string {
  let out = "";
  for (let at = 0; at < content.length; ) {
    const char = content[at] ?? "";
    const next = content[at + 1];
    if (char === reading.escapeChar && next !== undefined && ["$", reading.escapeChar].includes(next)) {
      out += next;
      at += 2;
    } else if (char === "$") {
      const { value, end } = variableAt(content, at, reading);
      out += value;
      at = end;
    } else {
      out += char;
      at += 1;
    }
    if (out.length > EXPANDED_MAX) throw new DockerfileRefused(reading.line, "a here-document becomes too long.");
  }
  reading.spend?.(out.length);
  return out;
}

const NAME = /[A-Za-z_]\w*/y;
const RULE = /^(:?[-+?])([\s\S]*)$/;

/** `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME:+alternative}`, `${NAME:?message}`; the colon may be absent. */
function variableAt(word: string, at: number, reading: Reading): { value: string; end: number } {
  const { lookup, line, depth = 0 } = reading;
  if (word[at + 1] !== "{") {
    NAME.lastIndex = at + 1;
    const name = NAME.exec(word)?.[0];
    return name === undefined ? { value: "$", end: at + 1 } : { value: lookup(name) ?? "", end: at + 1 + name.length };
  }
  if (depth > DEPTH_MAX) throw new DockerfileRefused(line, "defaults of variables are nested too deep.");
  const end = closing(word, at + 1);
  if (end < 0) throw new DockerfileRefused(line, `${shown(word)} has a brace without an end.`);
  const inner = word.slice(at + 2, end);
  const name = /^[A-Za-z_]\w*/.exec(inner)?.[0] ?? "";
  const rule = inner.slice(name.length);
  if (name === "") throw new DockerfileRefused(line, `${shown(`\${${inner}}`)} names no variable.`);
  const value = lookup(name);
  if (rule === "") return { value: value ?? "", end: end + 1 };
  const [, operator = "", rest = ""] = RULE.exec(rule) ?? [];
  if (operator === "")
    throw new DockerfileRefused(line, `${shown(`\${${inner}}`)} is not a form of a variable that is known here.`);
  const isSet = value !== undefined && !(operator.startsWith(":") && value === "");
  const inside = { ...reading, depth: depth + 1 };
  if (operator.endsWith("-")) return { value: isSet ? value : expand(rest, inside), end: end + 1 };
  if (operator.endsWith("+")) return { value: isSet ? expand(rest, inside) : "", end: end + 1 };
  if (!isSet) throw new DockerfileRefused(line, `the variable ${name} is not set${rest === "" ? "" : `: ${rest}`}.`);
  return { value, end: end + 1 };
}

function closing(word: string, open: number): number {
  let depth = 0;
  for (let at = open; at < word.length; at++) {
    if (word[at] === "\\") at += 1;
    else if (word[at] === "{") depth += 1;
    else if (word[at] === "}" && --depth === 0) return at;
  }
  return -1;
}

/** Words between spaces; quotes do not hold words together, as in Docker's COPY. */
export const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");

/** The strings of a JSON array; null when the text is no such array, which is then taken for a line of the shell. */
export function jsonList(text: string): string[] | null {
  if (!text.trimStart().startsWith("[")) return null;
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) && value.every((each) => typeof each === "string") ? value : null;
  } catch {
    return null;
  }
}

/** `A=1 B="x y"`, still with quotes and variables; the old form `A some words` is one pair. */
export function pairsOf(text: string, { escapeChar, line }: Pick<Reading, "escapeChar" | "line">): [string, string][] {
  const words = quotedWords(text, escapeChar);
  const [first = ""] = words;
  if (!first.includes("=")) {
    const value = text.slice(first.length).trim();
    if (first === "" || value === "") throw new DockerfileRefused(line, `${shown(text)} needs a name and a value.`);
    return [[first, value]];
  }
  return words.map((word) => {
    const equals = word.indexOf("=");
    if (equals < 1) throw new DockerfileRefused(line, `${shown(word)} is not NAME=VALUE.`);
    return [word.slice(0, equals), word.slice(equals + 1)];
  });
}

/** Words between spaces that are neither quoted nor escaped. Quotes stay. */
export function quotedWords(text: string, escapeChar: string): string[] {
  const words: string[] = [];
  let [word, quote] = ["", ""];
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? "";
    if (char === escapeChar && quote !== "'") {
      word += char + (text[at + 1] ?? "");
      at += 1;
    } else if (quote === "" && /\s/.test(char)) {
      if (word !== "") words.push(word);
      word = "";
    } else {
      if (quote === "" && (char === '"' || char === "'")) quote = char;
      else if (char === quote) quote = "";
      word += char;
    }
  }
  return word === "" ? words : [...words, word];
}
