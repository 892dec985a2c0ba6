/** Finds the resource that holds a word in a host name. */
import type { WordPool } from "../contract/held-words.ts";
import type { Store } from "../store/store.ts";

export interface Holder {
  workspace: string;
  uid: string;
}

export interface HeldLookup {
  /** The last result, which is valid while that resource exists. */
  known(word: string): Holder | undefined;
  find(word: string): Promise<Holder | null>;
}

/** Cached words, to bound memory. A full table is emptied. */
const KNOWN_MAX = 20_000;

export function createHeldLookup(pool: WordPool, { store }: { store: Store }): HeldLookup {
  const known = new Map<string, Holder>();
  return {
    known: (word) => known.get(word),
    async find(word) {
      const holder = await store.heldWords.holderOf(pool, word);
      if (!holder) return null;
      if (known.size >= KNOWN_MAX) known.clear();
      known.set(word, holder);
      return holder;
    },
  };
}
