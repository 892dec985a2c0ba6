/**
 * Finds the first rule of `firewall.rules` that matches a destination without asking every rule: rules are filed by
 * their domains, otherwise by their range of addresses, and only rules filed under the destination are asked.
 */
import { patternsOf } from "./domain-set.ts";
import type { Destination, FirewallRule } from "./firewall-rule.ts";
import { masked } from "./network-range.ts";

export class RuleIndex {
  readonly #rules: readonly FirewallRule[];
  /** Places of rules, ascending, under each key. */
  readonly #filed = new Map<string, number[]>();
  /** Prefixes of ranges that are filed, by the length of their addresses in bytes. */
  readonly #prefixes = new Map<number, Set<number>>();

  constructor(rules: readonly FirewallRule[]) {
    this.#rules = rules;
    for (const [place, rule] of rules.entries()) for (const key of this.#keysOf(rule)) this.#file(key, place);
  }

  get size(): number {
    return this.#rules.length;
  }

  first(destination: Destination): FirewallRule | null {
    if (this.#rules.length === 0) return null;
    let best = Number.POSITIVE_INFINITY;
    for (const key of this.#keysFor(destination))
      for (const place of this.#filed.get(key) ?? []) {
        if (place >= best) break;
        if (this.#rules[place]?.matches(destination)) best = place;
      }
    return this.#rules[best] ?? null;
  }

  #file(key: string, place: number): void {
    const places = this.#filed.get(key);
    if (!places) this.#filed.set(key, [place]);
    else if (places.at(-1) !== place) places.push(place);
  }

  #keysOf({ patterns, range }: FirewallRule): readonly string[] {
    if (patterns) return patterns;
    if (!range) return [UNFILED];
    const { bytes, prefix } = range;
    this.#prefixes.set(bytes.length, (this.#prefixes.get(bytes.length) ?? new Set()).add(prefix));
    return [rangeKey(bytes, prefix)];
  }

  *#keysFor({ host, address }: Destination): Generator<string> {
    yield UNFILED;
    yield* patternsOf(host);
    const dialled = address ?? host.address;
    if (!dialled) return;
    for (const prefix of this.#prefixes.get(dialled.length) ?? []) yield rangeKey(masked(dialled, prefix), prefix);
  }
}

/** No host is this text. */
const UNFILED = "";

const rangeKey = (bytes: Uint8Array, prefix: number): string => `${Buffer.from(bytes).toString("hex")}/${prefix}`;
