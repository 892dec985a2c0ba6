/** Periodic tasks about nodes. */
import { MINUTE_MS, SECOND_MS } from "../../lib/time/clock.ts";
import { drive } from "../drive/kind.ts";
import type { KindTask } from "../kind-task.ts";
import type { Deps } from "../port.ts";
import { emptyDrainedNodes } from "./drain.ts";
import { endLeftovers } from "./leftovers.ts";
import { settleLostNodes } from "./lost.ts";

const LOST_MS = 5 * SECOND_MS;
const DRAINED_MS = 5 * SECOND_MS;
const LEFTOVERS_MS = 15 * SECOND_MS;
const MEASURE_MS = 5 * MINUTE_MS;
const PAGE = 500;
const MB = 2 ** 20;

/** A SQLite file has one node, which has nothing to settle with others. */
export const nodeTasks = (deps: Deps): KindTask[] =>
  deps.store.database.dialect === "sqlite"
    ? []
    : [
        { name: "settle-lost-nodes", everyMs: LOST_MS, run: (signal) => settleLostNodes(deps, signal) },
        { name: "empty-drained-nodes", everyMs: DRAINED_MS, run: (signal) => emptyDrainedNodes(deps, signal) },
        {
          name: `end-leftovers/${deps.settings.nodeId}`,
          everyMs: LEFTOVERS_MS,
          run: (signal) => endLeftovers(deps, signal),
        },
        {
          name: `measure-drives/${deps.settings.nodeId}`,
          everyMs: MEASURE_MS,
          run: (signal) => measureDrives(deps, signal),
        },
      ];

/** Writes the sizes of this node's drives into their records, for the server that meters storage. */
async function measureDrives({ store, driver, nodes }: Deps, signal: AbortSignal): Promise<void> {
  const drives = await driver.capability("drives");
  if (drives === null) return;
  for (let after = ""; ; ) {
    const page = await store.ownership.listOwned(nodes.self.id, [drive.name], after, PAGE);
    for (const { workspace, uid } of page) {
      signal.throwIfAborted();
      const storedMb = Math.ceil(((await drives.bytes(uid)) ?? 0) / MB);
      await store.resources.update(workspace, uid, (current) =>
        current.state.storedMb === storedMb ? null : { state: { ...current.state, storedMb } },
      );
    }
    after = page.at(-1)?.uid ?? "";
    if (page.length < PAGE) return;
  }
}
