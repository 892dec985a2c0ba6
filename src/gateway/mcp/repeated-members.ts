/**
 * Tells whether JSON can be read in two ways. Parsers disagree about a member that is repeated, and some ignore the case
 * of names. The text is read once, character by character: strangers send it, and it may be megabytes of brackets.
 */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;

/** `text` must be valid JSON. */
export function hasRepeatedMember(text: string): boolean {
  /** Names of the objects that are open; null for a list or an object without names so far. */
  const open: (Set<string> | null)[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (char === OPEN || char === OPEN_LIST) open.push(null);
    else if (char === CLOSE || char === CLOSE_LIST) open.pop();
    if (char !== QUOTE) continue;
    const from = at;
    at += 1;
    while (text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
    if (!isName(text, at + 1)) continue;
    const name = JSON.parse(text.slice(from, at + 1)) as string;
    const names = open[open.length - 1] ?? new Set<string>();
    if (names.has(name)) return true;
    names.add(name);
    open[open.length - 1] = names;
  }
  return false;
}

/** Only the name of a member is followed by a colon. */
function isName(text: string, from: number): boolean {
  let at = from;
  while (/\s/.test(text.charAt(at))) at += 1;
  return text.charCodeAt(at) === COLON;
}

/** Whether a member has one of these names in another spelling. */
export const hasOtherSpelling = (object: Record<string, unknown>, names: readonly string[]): boolean =>
  Object.keys(object).some((key) =>
    names.some((name) => key !== name && key.length === name.length && key.toUpperCase() === name.toUpperCase()),
  );
