/**
 * A set of hosts: exact names and addresses, `*.example.com` for every name below example.com but not itself, and `*`
 * for every host. A look-up takes as many steps as the name has labels, however many patterns there are.
 */
import { type Host, parseHost } from "./host.ts";
import { RuleProblem } from "./rule-problem.ts";

export interface DomainSet {
  readonly size: number;
  /** The place in the specification of the pattern that holds the host; null when no pattern does. */
  find(host: Host): string | null;
  /** The same for patterns that are this very text. */
  findExact(text: string): string | null;
}

/** A pattern and the place in the specification where the pattern stands. */
export interface PlacedPattern {
  pattern: string;
  path: string;
}

const ANY = "*";
const BELOW = "*.";

/** A pattern in its one spelling. Throws RuleProblem for a text that is no pattern. */
export function parsePattern({ pattern, path }: PlacedPattern): string {
  if (pattern === ANY) return ANY;
  const isBelow = pattern.startsWith(BELOW);
  const host = parseHost(isBelow ? pattern.slice(BELOW.length) : pattern);
  if (!host || (isBelow && host.address)) throw new RuleProblem(path, describe(pattern));
  return isBelow ? `${BELOW}${host.text}` : host.text;
}

/** Every pattern that holds the host, the nearest first. */
export function* patternsOf({ text, address }: Host): Generator<string> {
  yield text;
  if (!address)
    for (let dot = text.indexOf("."); dot >= 0; dot = text.indexOf(".", dot + 1)) yield `*${text.slice(dot)}`;
  yield ANY;
}

/** Throws RuleProblem for a text that is no pattern. */
export function domainSet(patterns: readonly PlacedPattern[]): DomainSet {
  const places = new Map<string, string>();
  for (const placed of patterns) {
    const pattern = parsePattern(placed);
    if (!places.has(pattern)) places.set(pattern, placed.path);
  }
  return {
    size: places.size,
    find(host) {
      if (places.size === 0) return null;
      for (const pattern of patternsOf(host)) {
        const found = places.get(pattern);
        if (found !== undefined) return found;
      }
      return null;
    },
    findExact: (text) => places.get(text) ?? null,
  };
}

const describe = (pattern: string): string =>
  `'${pattern.slice(0, 80)}' is not a host; write example.com, *.example.com (every name below), an address, or *`;
