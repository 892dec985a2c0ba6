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

/** Throws RuleProblem for a text that is no pattern. */
export function domainSet(patterns: readonly PlacedPattern[]): DomainSet {
  const exact = new Map<string, string>();
  const below = new Map<string, string>();
  let any: string | null = null;
  for (const { pattern, path } of patterns) {
    if (pattern === ANY) {
      any ??= path;
      continue;
    }
    const isBelow = pattern.startsWith(BELOW);
    const host = parseHost(isBelow ? pattern.slice(BELOW.length) : pattern);
    if (!host || (isBelow && host.address)) throw new RuleProblem(path, describe(pattern));
    const places = isBelow ? below : exact;
    if (!places.has(host.text)) places.set(host.text, path);
  }
  return {
    size: exact.size + below.size + (any === null ? 0 : 1),
    find: ({ text, address }) => exact.get(text) ?? (address ? null : findBelow(below, text)) ?? any,
    findExact: (text) => exact.get(text) ?? null,
  };
}

function findBelow(below: ReadonlyMap<string, string>, name: string): string | null {
  if (below.size === 0) return null;
  for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
    const found = below.get(name.slice(dot + 1));
    if (found !== undefined) return found;
  }
  return null;
}

const describe = (pattern: string): string =>
  `'${pattern.slice(0, 80)}' is not a host; write example.com, *.example.com (every name below), an address, or *`;
