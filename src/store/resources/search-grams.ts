/**
 * Substring search by grams: a text is indexed by all its pairs and triples of characters, a query looks for its own.
 * Two characters are enough to search, so pairs are indexed too. Each gram carries the list it belongs to, so the
 * index of one workspace's sandboxes never meets another's. What the index returns is checked against the text.
 */
import { createHash } from "node:crypto";

/**
 * Grams used per query, the rarest ones. Three are selective enough; each further posting list costs more to read than
 * it excludes.
 */
const QUERY_GRAMS_MAX = 3;
/** Letters from the most frequent to the rarest. Other characters are rarer still in names. */
const LETTERS = "etaoinshrdlucmfwygpbvkxqjz";

export interface ListScope {
  workspace: string;
  kind: string;
  parent: string;
}

export interface Searchable {
  displayName?: string | undefined;
  labels?: Record<string, string> | undefined;
}

/** The parts are joined by newlines, which no trimmed query contains, so a match never spans two parts. */
export function searchText(name: string, { displayName, labels }: Searchable): string {
  let text = `${name}\n${displayName ?? ""}`;
  for (const key in labels) text += `\n${key}\n${labels[key]}`;
  return text.toLowerCase();
}

export function gramsOf(text: string, scope: ListScope): string[] {
  const prefix = scopeToken(scope);
  // Duplicates are detected by their characters, which are shorter than the grams.
  const seen = new Set<string>();
  const grams: string[] = [];
  const isNew = (characters: string): boolean => seen.size !== seen.add(characters).size;
  for (const part of text.split("\n")) {
    let [first, second] = [hexAt(part, 0), hexAt(part, 1)];
    for (let at = 0; at + 2 <= part.length; at += 1) {
      const pair = prefix + first + second;
      const third = hexAt(part, at + 2);
      if (isNew(part.slice(at, at + 2))) grams.push(pair);
      if (third !== "" && isNew(part.slice(at, at + 3))) grams.push(pair + third);
      [first, second] = [second, third];
    }
  }
  return grams;
}

export function gramsOfQuery(q: string, scope: ListScope): string[] {
  const prefix = scopeToken(scope);
  if (q.length === 2) return [prefix + hex(q, 0, 2)];
  const triples = Array.from({ length: q.length - 2 }, (_, at) => ({ at, rarity: rarityOf(q.slice(at, at + 3)) }));
  triples.sort((a, b) => b.rarity - a.rarity);
  const grams = new Set<string>();
  for (const { at } of triples) if (grams.size < QUERY_GRAMS_MAX) grams.add(prefix + hex(q, at, 3));
  return [...grams];
}

function rarityOf(gram: string): number {
  let rarity = 0;
  for (const letter of gram) rarity += LETTERS.includes(letter) ? LETTERS.indexOf(letter) : LETTERS.length;
  return rarity;
}

const scopeTokens = new Map<string, string>();
const SCOPES_MAX = 10_000;

function scopeToken({ workspace, kind, parent }: ListScope): string {
  const key = `${workspace}\0${kind}\0${parent}`;
  let token = scopeTokens.get(key);
  if (!token) {
    token = createHash("sha256").update(key).digest("hex").slice(0, 10);
    if (scopeTokens.size >= SCOPES_MAX) scopeTokens.clear();
    scopeTokens.set(key, token);
  }
  return token;
}

function hex(text: string, at: number, length: number): string {
  let token = "";
  for (let n = at; n < at + length; n += 1) token += hexAt(text, n);
  return token;
}

const HEX_OF_ASCII = Array.from({ length: 128 }, (_, code) => code.toString(16).padStart(4, "0"));

/** "" beyond the end of the text. */
function hexAt(text: string, at: number): string {
  if (at >= text.length) return "";
  const code = text.charCodeAt(at);
  return HEX_OF_ASCII[code] ?? code.toString(16).padStart(4, "0");
}
