/** From the hash in an internal name to the workload that is meant. */
import { INTERNAL_KINDS, type InternalKind, internalHash } from "../contract/internal-names.ts";
import type { Running } from "../lib/lifecycle.ts";
import type { Store } from "../store/store.ts";
import type { Candidate } from "./route.ts";

export interface InternalLookup extends Running {
  find(hash: string): Promise<(Candidate & { kind: InternalKind }) | null>;
}

const PAGE = 500;

/** What a hash means never changes, so the table is only read again for one that it does not have. */
export function createInternalLookup({ store }: { store: Store }): InternalLookup {
  const known = new Map<string, Candidate & { kind: InternalKind }>();
  let isStale = true;
  let reading: Promise<void> | null = null;
  const unsubscribe = store.resources.onChange((kind) => {
    if (INTERNAL_KINDS.some((one) => one === kind)) isStale = true;
  });

  async function read(): Promise<void> {
    isStale = false;
    known.clear();
    for (const kind of INTERNAL_KINDS)
      for (let after = "", more = true; more; ) {
        const page = await store.resources.listAcrossWorkspaces(kind, after, PAGE);
        for (const { workspace, name } of page)
          known.set(internalHash(workspace, kind, name), { workspace, kind, name });
        after = page.at(-1)?.uid ?? "";
        more = page.length === PAGE;
      }
  }

  return {
    async find(hash) {
      if (!known.has(hash) && isStale) {
        reading ??= read().finally(() => {
          reading = null;
        });
        await reading;
      }
      return known.get(hash) ?? null;
    },
    async stop() {
      unsubscribe();
    },
  };
}
