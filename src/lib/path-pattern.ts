/**
 * Patterns of paths as Docker has them: `*` and `?` within a name, `[a-z]`, `\` before a plain character, `**`. Patterns
 * come from strangers, so they are not turned into regular expressions: those may take exponential time. Here the time is
 * the length of the path times the length of the pattern.
 */
export interface PathPattern {
  test(path: string): boolean;
}

/** Longest pattern. */
const PATTERN_MAX = 500;

/** A place in the pattern: which characters lead on to the next place, and whether it is kept at a character. */
interface Place {
  /** Characters that lead to the next place. */
  takes: (char: string) => boolean;
  /** Characters at which the pattern stays here, too. */
  stays?: (char: string) => boolean;
  /** The next places may be reached without a character: this many places on. */
  skips?: number;
}

const isName = (char: string): boolean => char !== "/";
const isAny = (): boolean => true;
const isNone = (): boolean => false;

/** Null when the pattern cannot be read. `deep`: `**` stands for any number of folders. */
export function pathPattern(pattern: string, { deep = false } = {}): PathPattern | null {
  if (pattern.length > PATTERN_MAX) return null;
  const places: Place[] = [];
  for (let at = 0; at < pattern.length; ) {
    const char = pattern[at] ?? "";
    if (deep && pattern.startsWith("**/", at)) {
      // Nothing, or anything up to a slash.
      places.push({ takes: isAny, skips: 2 }, { takes: (each) => each === "/", stays: isAny });
      at += 3;
    } else if (deep && pattern.startsWith("**", at)) {
      places.push({ takes: isNone, stays: isAny, skips: 1 });
      at += 2;
    } else if (char === "*") {
      while (pattern[at] === "*") at += 1;
      places.push({ takes: isNone, stays: isName, skips: 1 });
    } else if (char === "?") {
      places.push({ takes: isName });
      at += 1;
    } else if (char === "[") {
      const end = pattern.indexOf("]", at + 2);
      const takes = end < 0 ? null : membersOf(pattern.slice(at + 1, end));
      if (takes === null) return null;
      places.push({ takes });
      at = end + 1;
    } else {
      const isEscaped = char === "\\" && at + 1 < pattern.length;
      const plain = isEscaped ? (pattern[at + 1] ?? "") : char;
      places.push({ takes: (each) => each === plain });
      at += isEscaped ? 2 : 1;
    }
  }
  return { test: (path) => matches(places, path) };
}

/** `a-z`, `!abc`, `^abc`; null when a range ends before it begins. */
function membersOf(text: string): Place["takes"] | null {
  const isNot = /^[!^]/.test(text);
  const ranges: [string, string][] = [];
  const members = isNot ? text.slice(1) : text;
  for (let at = 0; at < members.length; ) {
    const [first = "", dash, last] = members.slice(at, at + 3);
    const isRange = dash === "-" && last !== undefined;
    if (isRange && last < first) return null;
    ranges.push([first, isRange ? last : first]);
    at += isRange ? 3 : 1;
  }
  return (char) => isName(char) && ranges.some(([first, last]) => char >= first && char <= last) !== isNot;
}

/** Follows all ways through the pattern at the same time. */
function matches(places: readonly Place[], path: string): boolean {
  let here = new Set<number>();
  reach(places, 0, here);
  for (const char of path) {
    const next = new Set<number>();
    for (const at of here) {
      const place = places[at];
      if (!place) continue;
      if (place.stays?.(char)) reach(places, at, next);
      if (place.takes(char)) reach(places, at + 1, next);
    }
    if (next.size === 0) return false;
    here = next;
  }
  return here.has(places.length);
}

function reach(places: readonly Place[], at: number, into: Set<number>): void {
  for (let each = at; !into.has(each); ) {
    into.add(each);
    const skips = places[each]?.skips;
    if (skips === undefined) return;
    each += skips;
  }
}

export const hasPattern = (path: string): boolean => /[*?[\\]/.test(path);
