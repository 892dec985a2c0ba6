/**
 * The members of a JSON object, found without parsing it. The gateway changes one or two members of a body and must
 * not touch the rest: parsing and printing again would lose the digits of large integers, turn 1.0 into 1 and cost
 * time on every image sent inline. So the outermost object is only measured, and edits are spliced in between.
 *
 * The scanner checks the outermost structure, not the values: a malformed value is the provider's to refuse.
 */
export interface JsonMember {
  key: string;
  /** Offset of the key's opening quote. */
  keyStart: number;
  /** The value's bytes are [start, end). */
  start: number;
  end: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Members that are indexed: more than any known API has, and a bound for hostile bodies. */
const MEMBERS_MAX = 10_000;

/** Members of the outermost object in their order, duplicates included; null when it is not one JSON object. */
export function topLevelMembers(json: Buffer): JsonMember[] | null {
  const members: JsonMember[] = [];
  const isObject = eachMember(json, (keyStart, keyEnd, start, end) => {
    const key = keyOf(json, keyStart, keyEnd);
    if (key !== null) members.push({ key, keyStart, start, end });
    return key !== null;
  });
  return isObject ? members : null;
}

/** Calls back with the bounds of every member; false when the text is not one JSON object, or a callback says so. */
function eachMember(
  json: Buffer,
  visit: (keyStart: number, keyEnd: number, start: number, end: number) => boolean,
): boolean {
  let at = skipSpace(json, 0);
  if (json[at] !== OPEN_BRACE) return false;
  at = skipSpace(json, at + 1);
  if (json[at] === CLOSE_BRACE) return skipSpace(json, at + 1) === json.length;
  for (let count = 0; count < MEMBERS_MAX; count += 1) {
    if (json[at] !== QUOTE) return false;
    const keyStart = at;
    const keyEnd = stringEnd(json, at);
    if (keyEnd < 0) return false;
    at = skipSpace(json, keyEnd);
    if (json[at] !== COLON) return false;
    const start = skipSpace(json, at + 1);
    const end = valueEnd(json, start);
    if (end <= start || !visit(keyStart, keyEnd, start, end)) return false;
    at = skipSpace(json, end);
    if (json[at] === CLOSE_BRACE) return skipSpace(json, at + 1) === json.length;
    if (json[at] !== COMMA) return false;
    at = skipSpace(json, at + 1);
  }
  return false;
}

/** The parsed value of a member; the last one wins, as in every JSON parser. Undefined when absent or malformed. */
export function memberValue(json: Buffer, members: JsonMember[], key: string): unknown {
  for (let i = members.length - 1; i >= 0; i -= 1) {
    const member = members[i];
    if (member?.key === key) return parsed(json, member.start, member.end);
  }
  return undefined;
}

/** The same for one member of a text of which nothing else is asked; null when it is not one JSON object. */
export function valueOfMember(json: Buffer, key: string): { value: unknown } | null {
  const initial = key.charCodeAt(0);
  let from = 0;
  let to = 0;
  const isObject = eachMember(json, (keyStart, keyEnd, start, end) => {
    const first = json[keyStart + 1];
    if ((first === initial || first === BACKSLASH) && keyOf(json, keyStart, keyEnd) === key) {
      from = start;
      to = end;
    }
    return true;
  });
  return isObject ? { value: to === 0 ? undefined : parsed(json, from, to) } : null;
}

function parsed(json: Buffer, start: number, end: number): unknown {
  try {
    return JSON.parse(json.toString("utf8", start, end));
  } catch {
    // A full parse will report the error; here an unreadable member counts as absent.
    return undefined;
  }
}

/**
 * The value of the last member of that name anywhere in the text, for the end of an answer too long to keep. Inside a
 * string the name could only stand with its quotes escaped.
 */
export function lastValueNamed(tail: Buffer, key: string): unknown {
  const name = JSON.stringify(key);
  const found = tail.lastIndexOf(name);
  if (found < 0) return undefined;
  const colon = skipSpace(tail, found + name.length);
  const start = skipSpace(tail, colon + 1);
  const end = tail[colon] === COLON ? valueEnd(tail, start) : -1;
  if (end <= start) return undefined;
  return parsed(tail, start, end);
}

/**
 * The object with some members replaced (a JSON text), removed (null) or added. Duplicates of an edited key all
 * change, so that no parser downstream can pick an unedited one. Returns the same buffer when nothing changes.
 */
export function editMembers(json: Buffer, members: JsonMember[], edits: Record<string, string | null>): Buffer {
  if (isSo(json, members, edits)) return json;
  const parts: Buffer[] = [];
  const seen = new Set<string>();
  let keptFrom = -1;
  let keptTo = -1;
  const flush = (): void => {
    if (keptFrom >= 0) parts.push(json.subarray(keptFrom, keptTo));
    keptFrom = -1;
  };
  for (const member of members) {
    const edit = Object.hasOwn(edits, member.key) ? edits[member.key] : undefined;
    if (edit !== undefined) seen.add(member.key);
    if (edit === undefined || edit === json.toString("utf8", member.start, member.end)) {
      if (keptFrom < 0) keptFrom = member.keyStart;
      keptTo = member.end;
      continue;
    }
    flush();
    if (edit !== null) parts.push(Buffer.from(`${JSON.stringify(member.key)}:${edit}`));
  }
  flush();
  for (const [key, edit] of Object.entries(edits)) {
    if (edit === null || edit === undefined || seen.has(key)) continue;
    parts.push(Buffer.from(`${JSON.stringify(key)}:${edit}`));
  }
  const out: Buffer[] = [OPEN];
  for (const [index, part] of parts.entries()) out.push(...(index > 0 ? [SEPARATOR, part] : [part]));
  out.push(CLOSE);
  return Buffer.concat(out);
}

/** True when the object is already what the edits would make of it. */
function isSo(json: Buffer, members: JsonMember[], edits: Record<string, string | null>): boolean {
  for (const key in edits) {
    const edit = edits[key];
    let found = false;
    for (const member of members) {
      if (member.key !== key) continue;
      if (edit === null || json.toString("utf8", member.start, member.end) !== edit) return false;
      found = true;
    }
    if (!found && edit !== null) return false;
  }
  return true;
}

const OPEN = Buffer.from("{");
const SEPARATOR = Buffer.from(",");
const CLOSE = Buffer.from("}");

/** Calls back with the bounds [start, end) of every string in the text, quotes excluded, keys included. */
export function eachString(json: Buffer, visit: (start: number, end: number) => void): void {
  let at = json.indexOf(QUOTE);
  while (at >= 0) {
    const end = stringEnd(json, at);
    if (end < 0) return;
    visit(at + 1, end - 1);
    at = json.indexOf(QUOTE, end);
  }
}

function keyOf(json: Buffer, start: number, end: number): string | null {
  const inner = json.toString("utf8", start + 1, end - 1);
  if (!inner.includes("\\")) return inner;
  try {
    // An escaped spelling of "model" is still "model".
    return String(JSON.parse(json.toString("utf8", start, end)));
  } catch {
    return null;
  }
}

function skipSpace(json: Buffer, from: number): number {
  let at = from;
  for (; at < json.length; at += 1) {
    const byte = json[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
  }
  return at;
}

/** Keys and words are short: looking byte by byte is cheaper there than a search, which is cheaper on the long ones. */
const SHORT_STRING_BYTES = 32;

/** Offset after the closing quote of the string that opens at `from`; -1 when it never closes. */
function stringEnd(json: Buffer, from: number): number {
  let at = from + 1;
  for (;;) {
    const near = Math.min(json.length, at + SHORT_STRING_BYTES);
    for (; at < near; at += 1) {
      const byte = json[at];
      if (byte === QUOTE) return at + 1;
      if (byte === BACKSLASH) at += 1;
    }
    const quote = json.indexOf(QUOTE, at);
    if (quote < 0) return -1;
    let backslashes = 0;
    while (quote - backslashes > at && json[quote - 1 - backslashes] === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

function valueEnd(json: Buffer, from: number): number {
  const first = json[from];
  if (first === QUOTE) return stringEnd(json, from);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return nestedEnd(json, from);
  let at = from;
  for (; at < json.length; at += 1) {
    const byte = json[at] ?? 0;
    if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || byte <= 0x20) break;
  }
  return at;
}

function nestedEnd(json: Buffer, from: number): number {
  let depth = 0;
  let at = from;
  while (at < json.length) {
    const byte = json[at];
    if (byte === QUOTE) {
      at = stringEnd(json, at);
      if (at < 0) return -1;
      continue;
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth += 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1;
    at += 1;
    if (depth === 0) return at;
  }
  return -1;
}
