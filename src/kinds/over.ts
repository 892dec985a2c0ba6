/** Removes expired records. They are already invisible; removal frees their space. */
import { KINDS } from "./index.ts";
import type { Platform } from "./port.ts";

const PAGE = 500;

export async function removeOver(
  { store, clock }: Pick<Platform, "store" | "clock">,
  signal: AbortSignal,
): Promise<void> {
  for (const { name, endOf } of KINDS) {
    if (!endOf) continue;
    for (let after = ""; ; ) {
      const page = await store.resources.listAcrossWorkspaces(name, after, PAGE);
      for (const resource of page) {
        signal.throwIfAborted();
        if ((endOf(resource) ?? Number.POSITIVE_INFINITY) <= clock.now())
          await store.resources.delete(resource.workspace, resource.uid);
      }
      after = page.at(-1)?.uid ?? "";
      if (page.length < PAGE) break;
    }
  }
}
