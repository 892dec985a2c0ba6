/** What a sandbox takes along to another node: its record. Its files stay behind, so its owner has to allow that. */
import type { Resource } from "../../store/resources/resource.ts";
import { forkOf } from "./fork-origin.ts";

/** Null: it waits for its node. A fork does so too: the files that it starts from are there. */
export function sandboxElsewhere(sandbox: Resource): Record<string, unknown> | null {
  const { onNodeLoss } = (sandbox.spec.lifecycle ?? {}) as { onNodeLoss?: "wait" | "recreate" };
  if (onNodeLoss !== "recreate" || forkOf(sandbox)) return null;
  const { instances: _instances, deployed: _deployed, compute: _compute, ...state } = sandbox.state;
  return state;
}
