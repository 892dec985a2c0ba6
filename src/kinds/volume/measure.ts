/** Writes the used bytes of this node's volumes into their records. */
import { MINUTE_MS } from "../../lib/time/clock.ts";
import type { KindTask } from "../kind-task.ts";
import type { Deps } from "../port.ts";
import { volume } from "./kind.ts";
import { noteStorage } from "./storage.ts";

const MEASURE_MS = 5 * MINUTE_MS;
const PAGE = 500;

export const volumeTasks = (deps: Deps): KindTask[] => [
  {
    name: `measure-volumes/${deps.settings.nodeId}`,
    everyMs: MEASURE_MS,
    run: (signal) => measureVolumes(deps, signal),
  },
];

export async function measureVolumes(deps: Deps, signal: AbortSignal): Promise<void> {
  const volumes = await deps.driver.capability("volumes");
  if (volumes === null) return;
  for (let after = ""; ; ) {
    const page = await deps.store.ownership.listOwned(deps.nodes.self.id, [volume.name], after, PAGE);
    for (const resource of page) {
      signal.throwIfAborted();
      const found = resource.deletedAt === null ? await volumes.observe(resource.uid) : null;
      if (found) await noteStorage(resource, found, deps);
    }
    after = page.at(-1)?.uid ?? "";
    if (page.length < PAGE) return;
  }
}
