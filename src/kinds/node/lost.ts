/**
 * Workloads of a node that is lost. Those without files of their own move to a live node; all others wait for their
 * node, and say so. Nothing is made anew with empty files unless its owner allowed that.
 */
import type { Resource } from "../../store/resources/resource.ts";
import type { Deps } from "../port.ts";
import type { Away } from "./away.ts";
import { workloadsOf } from "./leftovers.ts";
import { MOVING_KINDS, move } from "./move.ts";

const PAGE = 500;
/** A workload in one of these states is not missed. */
const AT_REST = new Set(["DEACTIVATED", "FAILED", "TERMINATED"]);

const awayOf = ({ state }: { state: { away?: Away } }): Away | undefined => state.away;

export async function settleLostNodes(deps: Deps, signal: AbortSignal): Promise<void> {
  const { nodes, store } = deps;
  if (nodes.shared) return;
  for (const { id } of nodes.list()) {
    for (let after = ""; nodes.isLost(id); ) {
      const page = await store.ownership.listOwned(id, MOVING_KINDS, after, PAGE);
      for (const resource of page) {
        signal.throwIfAborted();
        if (!(await move(resource, { why: `Node ${nodes.nameOf(id)} is lost.` }, deps)))
          await waitForNode(resource, deps);
      }
      after = page.at(-1)?.uid ?? "";
      if (page.length < PAGE) break;
    }
  }
}

async function waitForNode({ workspace, uid, node }: Resource, { store, nodes }: Deps): Promise<void> {
  const message = `Node ${nodes.nameOf(node ?? "")} is not heard of. It goes on there, with its files, when the node returns.`;
  await store.resources.update(workspace, uid, (current) =>
    current.retired || current.node !== node || current.deletedAt !== null || AT_REST.has(current.status ?? "")
      ? null
      : {
          status: "DEACTIVATED",
          state: { ...current.state, away: { status: current.status } satisfies Away },
          event: { type: "node-lost", message },
        },
  );
}

/** Called by the node of the workload: takes up a workload that waited for this node. */
export async function welcomeBack(resource: Resource, { store, nodes, driver }: Deps): Promise<Resource> {
  if (!awayOf(resource) || !nodes.owns(resource.node)) return resource;
  const running = await Promise.all(workloadsOf(resource).map((uid) => driver.observe(uid)));
  const runs = running.some((workload) => workload !== null && workload.state !== "exited");
  const message = `Node ${nodes.self.name} is back${runs ? ", and it runs on there as it was" : ""}.`;
  const taken = await store.resources.update(resource.workspace, resource.uid, (current) => {
    const away = awayOf(current);
    if (!away || !nodes.owns(current.node)) return null;
    const { away: _, ...state } = current.state;
    const status = current.deletedAt === null ? { status: away.status } : {};
    return { ...status, state, event: { type: "node-returned", message } };
  });
  return taken ?? resource;
}
