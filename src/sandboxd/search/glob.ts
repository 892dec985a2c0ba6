/**
 * File name patterns: `*`, `?`, `[a-z]`, `{a,b}`. Matched without regular expressions, so that a pattern with many
 * stars costs at most its length times the name's.
 */
const ALTERNATIVES_MAX = 64;
const PATTERN_CHARS_MAX = 512;

export type NameMatcher = (name: string) => boolean;

/** Matches when any pattern does; no pattern at all matches everything. */
export function nameMatcher(patterns: string[]): NameMatcher {
  const tokens = patterns
    .filter(Boolean)
    .flatMap((pattern) => expandBraces(pattern.slice(0, PATTERN_CHARS_MAX)))
    .map(tokenize);
  return tokens.length === 0 ? () => true : (name) => tokens.some((pattern) => matches(pattern, [...name]));
}

/** Commas separate patterns, but not inside braces. */
export function splitPatterns(text: string): string[] {
  const parts: string[] = [""];
  let depth = 0;
  for (const char of text) {
    if (char === "{") depth += 1;
    if (char === "}") depth -= 1;
    if (char === "," && depth <= 0) parts.push("");
    else parts[parts.length - 1] += char;
  }
  return parts.map((part) => part.trim()).filter(Boolean);
}

type Token = "*" | "?" | { one: Set<string>; ranges: [string, string][]; negated: boolean };

function expandBraces(pattern: string): string[] {
  const done: string[] = [];
  const todo = [pattern];
  for (let next = todo.pop(); next !== undefined && done.length < ALTERNATIVES_MAX; next = todo.pop()) {
    const match = /^(.*?)\{([^{}]*)\}(.*)$/s.exec(next);
    if (!match) done.push(next);
    else
      todo.push(
        ...(match[2] ?? "")
          .split(",")
          .map((choice) => `${match[1]}${choice}${match[3]}`)
          .reverse(),
      );
    if (todo.length > ALTERNATIVES_MAX) todo.length = ALTERNATIVES_MAX;
  }
  return done;
}

function tokenize(pattern: string): Token[] {
  const tokens: Token[] = [];
  const chars = [...pattern];
  for (let i = 0; i < chars.length; i += 1) {
    const char = chars[i] ?? "";
    if (char === "*") {
      if (tokens.at(-1) !== "*") tokens.push("*");
    } else if (char === "?") tokens.push("?");
    else if (char === "[" && chars.indexOf("]", i + 2) !== -1) {
      const end = chars.indexOf("]", i + 2);
      tokens.push(charClass(chars.slice(i + 1, end)));
      i = end;
    } else {
      const escaped = char === "\\" && i + 1 < chars.length;
      if (escaped) i += 1;
      const literal = escaped ? (chars[i] ?? "") : char;
      tokens.push({ one: new Set([literal]), ranges: [], negated: false });
    }
  }
  return tokens;
}

function charClass(chars: string[]): Token {
  const negated = chars[0] === "!" || chars[0] === "^";
  const body = negated ? chars.slice(1) : chars;
  const one = new Set<string>();
  const ranges: [string, string][] = [];
  for (let i = 0; i < body.length; i += 1) {
    const first = body[i] ?? "";
    const last = body[i + 2];
    if (body[i + 1] === "-" && last !== undefined) {
      ranges.push([first, last]);
      i += 2;
    } else one.add(first);
  }
  return { one, ranges, negated };
}

/** Greedy with one backtracking point: when a later part fails, only the last star takes one character more. */
function matches(tokens: Token[], name: string[]): boolean {
  let at = 0;
  let token = 0;
  let star = -1;
  let retry = 0;
  while (at < name.length) {
    const current = tokens[token];
    if (current === "*") {
      star = token;
      retry = at;
      token += 1;
    } else if (current !== undefined && accepts(current, name[at] ?? "")) {
      token += 1;
      at += 1;
    } else if (star !== -1) {
      token = star + 1;
      retry += 1;
      at = retry;
    } else return false;
  }
  while (tokens[token] === "*") token += 1;
  return token === tokens.length;
}

function accepts(token: Exclude<Token, "*">, char: string): boolean {
  if (token === "?") return true;
  const inside = token.one.has(char) || token.ranges.some(([first, last]) => first <= char && char <= last);
  return inside !== token.negated;
}
