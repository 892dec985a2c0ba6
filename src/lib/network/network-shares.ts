/**
 * Places that client addresses share evenly when they run short, from the widest networks inwards: a client with a whole
 * /48 has one share, however many /64 networks it uses, and its /64 networks share that one.
 */
import { FairShares, type Refusal } from "../fair-shares.ts";
import { memberNames, NETWORK_LEVELS } from "./client-network.ts";

/** Part of the places that one network may take, so that a client from elsewhere finds a free one. */
const NETWORK_PART = 3 / 4;

/** The most places of `max` that one network gets. */
export const networkMax = (max: number): number => Math.ceil(max * NETWORK_PART);

interface Level {
  places: FairShares;
  /** How many networks of the next narrower level have places, by the network that they are in. */
  within: Map<string, number>;
}

export class NetworkShares {
  readonly max: number;
  readonly memberMax: number;
  /** Widest first. */
  readonly #levels: readonly Level[];

  /** `memberMax`: the most places of a network with so many times the limit of one client. */
  constructor(max: number, memberMax: (share: number) => number = () => networkMax(max)) {
    this.max = max;
    this.memberMax = memberMax(NETWORK_LEVELS[0] ?? 1);
    this.#levels = NETWORK_LEVELS.map((share) => ({
      places: new FairShares(max, memberMax(share)),
      within: new Map<string, number>(),
    })).reverse();
  }

  get total(): number {
    return this.#levels[0]?.places.total ?? 0;
  }

  /** Takes a place for the address; null when it got one. */
  enter(address: string): Refusal | null {
    const refusal = this.refusalFor(address);
    if (refusal === null)
      this.#change(address, (places, member) => void places.enter(member, Number.POSITIVE_INFINITY));
    return refusal;
  }

  leave(address: string): void {
    this.#change(address, (places, member) => places.leave(member));
  }

  refusalFor(address: string): Refusal | null {
    const names = memberNames(address).reverse();
    let even = Number.POSITIVE_INFINITY;
    for (const [level, { places }] of this.#levels.entries()) {
      const member = names[level] ?? "";
      const above = this.#levels[level - 1]?.within.get(names[level - 1] ?? "") ?? 0;
      even =
        level === 0
          ? places.evenShareOf(member)
          : Math.max(1, Math.floor(even / Math.max(1, above + (places.heldBy(member) === 0 ? 1 : 0))));
      const refusal = places.refusalFor(member, even);
      if (refusal !== null) return refusal;
    }
    return null;
  }

  #change(address: string, change: (places: FairShares, member: string) => void): void {
    const names = memberNames(address).reverse();
    for (const [level, { places }] of this.#levels.entries()) {
      const member = names[level] ?? "";
      const had = places.heldBy(member) > 0;
      change(places, member);
      const has = places.heldBy(member) > 0;
      const above = this.#levels[level - 1];
      if (above && had !== has) count(above.within, names[level - 1] ?? "", has ? 1 : -1);
    }
  }
}

function count(counts: Map<string, number>, key: string, delta: 1 | -1): void {
  const left = (counts.get(key) ?? 0) + delta;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}
