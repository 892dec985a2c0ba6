/** Finds the workload whose trigger claimed a path below a workspace, or a path above it. */
import { CLAIMS } from "../contract/references.ts";
import { TRIGGER_SEGMENTS_MAX } from "../contract/triggers.ts";
import type { Store } from "../store/store.ts";

export interface TriggerLookup {
  /** The uid of the workload with the longest claimed path that is a prefix of this one. */
  holderOf(workspace: string, path: string): Promise<string | null>;
}

export const createTriggerLookup = ({ store }: { store: Store }): TriggerLookup => ({
  async holderOf(workspace, path) {
    const words = claimable(workspace, path);
    const holders = await store.claims.holdersOf(CLAIMS.triggerPath, words);
    for (const word of words) {
      const uid = holders.get(word);
      if (uid !== undefined) return uid;
    }
    return null;
  },
});

/** Every claim that could match this path, longest first. */
function claimable(workspace: string, path: string): string[] {
  const [address = ""] = path.split("?", 1);
  const segments = address.split("/").slice(1, TRIGGER_SEGMENTS_MAX + 1);
  return segments.map((_, index) => [workspace, ...segments.slice(0, index + 1)].join("/")).reverse();
}
