/** Gives up what a node has that never returns. */
import type { NodeInfo } from "../../node/nodes.ts";
import type { Resource } from "../../store/resources/resource.ts";
import type { Modification } from "../../store/resources/resources.ts";
import { KINDS } from "../index.ts";
import type { Platform } from "../port.ts";
import { snapshot } from "../snapshot/kind.ts";
import { volumeSnapshot } from "../volume-snapshot/kind.ts";
import { PLACED_KINDS } from "./adopt.ts";
import { noteLeftovers } from "./leftovers.ts";
import { move } from "./move.ts";

const PAGE = 500;
/** Their files are lost with the node. */
const STATEFUL = new Set(["sandbox", "volume", "drive"]);

/**
 * Sandboxes, volumes and drives are deleted, with an event that says why; their snapshots go too. Everything else moves
 * to a live node, or belongs to this node from now on.
 */
export async function giveUp(node: NodeInfo, actor: string, deps: Platform): Promise<void> {
  const { store } = deps;
  const why = `Node ${node.name} was removed by ${actor}.`;
  for (let after = ""; ; ) {
    const page = await store.ownership.listOwned(node.id, PLACED_KINDS, after, PAGE);
    for (const resource of page) if (!(await move(resource, { why }, deps))) await letGo(resource, why, deps);
    after = page.at(-1)?.uid ?? "";
    if (page.length < PAGE) break;
  }
  // Records that are kept only for reading.
  await store.ownership.hand(node.id, deps.nodes.self.id);
}

async function letGo(resource: Resource, why: string, deps: Platform): Promise<void> {
  const { store, nodes } = deps;
  const { workspace, uid, node, kind } = resource;
  if (kind === snapshot.name || kind === volumeSnapshot.name) {
    await store.resources.delete(workspace, uid);
    return;
  }
  await noteLeftovers(resource, deps);
  const mine = { node: nodes.self.id } as const;
  const hasStatus = KINDS.some(({ name, initialStatus }) => name === kind && initialStatus);
  await store.resources.update(workspace, uid, (current): Modification | null => {
    if (current.node !== node) return null;
    if (!STATEFUL.has(kind)) return { ...mine, event: { type: "moved", message: why } };
    return {
      ...mine,
      deleted: true,
      intent: true,
      ...(hasStatus ? { status: "DELETING" } : {}),
      event: { type: "given-up", message: `${why} Its files were there and are lost.` },
    };
  });
}
