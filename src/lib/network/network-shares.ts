/**
 * Places that client addresses share evenly when they run short, at each width of network: a client with a whole /48
 * has one share of it, however many /64 networks it uses.
 */
import { FairShares } from "../fair-shares.ts";
import { memberNames, NETWORK_LEVELS } from "./client-network.ts";

/** Part of the places that one network may take, so that a client from elsewhere finds a free one. */
const NETWORK_PART = 3 / 4;

/** The most places of `max` that one network gets. */
export const networkMax = (max: number): number => Math.ceil(max * NETWORK_PART);

export class NetworkShares {
  readonly #levels: readonly FairShares[];

  constructor(max: number) {
    this.#levels = NETWORK_LEVELS.map(() => new FairShares(max, networkMax(max)));
  }

  get total(): number {
    return this.#levels[0]?.total ?? 0;
  }

  /** Takes a place for the address. Returns what gives the place back, or null when there is none. */
  enter(address: string): (() => void) | null {
    const names = memberNames(address);
    const wanted = this.#levels.map((places, level) => ({ places, member: names[level] ?? "" }));
    if (wanted.some(({ places, member }) => places.refusalFor(member) !== null)) return null;
    for (const { places, member } of wanted) places.enter(member);
    return () => {
      for (const { places, member } of wanted) places.leave(member);
    };
  }
}
